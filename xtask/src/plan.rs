//! A plan of crates against the module graph: the edges that would go upwards.

use crate::config::Config;
use crate::source::{self, Edge, ModuleId, Sources, Target};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The edges between two modules, by the modules.
type EdgesByPair = BTreeMap<(ModuleId, ModuleId), Vec<Edge>>;

/// A plan of crates.
struct Plan {
    /// The crates that a crate depends on, directly.
    arrows: BTreeMap<String, Vec<String>>,
    /// The crate of a module and of all under it; the longest path decides.
    modules: BTreeMap<String, String>,
}

impl Plan {
    fn new(config: &Config) -> Plan {
        let modules = config.lists("modules").into_iter();
        let modules = modules.flat_map(|(of, paths)| paths.into_iter().map(move |path| (path, of.clone())));
        Plan { arrows: config.lists("arrows"), modules: modules.collect() }
    }

    /// Returns the crate that a module goes to.
    fn crate_of(&self, sources: &Sources, id: ModuleId) -> Option<&str> {
        let line = sources.line_of(id);
        line.iter().rev().find_map(|&id| self.modules.get(&sources.path_of(id))).map(String::as_str)
    }

    /// Returns true if a crate may name another one: it is below, however far.
    fn allows(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(self.arrows.get(at).into_iter().flatten().map(String::as_str));
            }
        }
        false
    }
}

/// Prints the plan's modules and the edges that go upwards.
pub(crate) fn run(root: &Path, file: &Path) -> Result<()> {
    let plan = Plan::new(&Config::read(file)?);
    let sources = source::load(root)?;
    print!("{}", report(root, &sources, &plan));
    Ok(())
}

fn report(root: &Path, sources: &Sources, plan: &Plan) -> String {
    let mut text = String::new();
    let mut by_crate: BTreeMap<&str, Vec<ModuleId>> = BTreeMap::new();
    for id in 0..sources.modules.len() {
        if let Some(of) = plan.crate_of(sources, id) {
            by_crate.entry(of).or_default().push(id);
        }
    }
    text += "## Modules by crate\n\n";
    for (of, modules) in &by_crate {
        let files: BTreeSet<&Path> = modules.iter().map(|&id| sources.modules[id].file.as_path()).collect();
        let lines =
            |file: &&Path| std::fs::read_to_string(root.join(file)).map_or(0, |text| text.lines().count());
        let total: usize = files.iter().map(lines).sum();
        text += &format!("### {of}: {} files, {total} lines\n\n", files.len());
        for file in &files {
            text += &format!("- {} ({})\n", file.display(), lines(file));
        }
        text.push('\n');
    }

    let mut upward: BTreeMap<(&str, &str), EdgesByPair> = BTreeMap::new();
    for edge in sources.edges() {
        if let (Some(from), Some(to)) = (plan.crate_of(sources, edge.from), plan.crate_of(sources, edge.to))
            && !plan.allows(from, to)
        {
            upward.entry((from, to)).or_default().entry((edge.from, edge.to)).or_default().push(edge);
        }
    }
    text += "## Edges that go upwards\n\n";
    for ((from, to), pairs) in &upward {
        let places: usize = pairs.values().map(Vec::len).sum();
        text += &format!("### {from} -> {to}: {places} places between {} pairs of modules\n\n", pairs.len());
        for ((a, b), edges) in pairs {
            let mut items: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for edge in edges {
                items.entry(edge.item.as_deref().unwrap_or("(module)")).or_default().push(edge.at.line);
            }
            let items: Vec<String> = items
                .iter()
                .map(|(item, lines)| {
                    let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                    lines.dedup();
                    format!("{item} ({})", lines.join(", "))
                })
                .collect();
            text += &format!(
                "- {} [{}] -> {}: {}\n",
                sources.path_of(*a),
                sources.modules[*a].file.display(),
                sources.path_of(*b),
                items.join("; ")
            );
        }
        text.push('\n');
    }
    text + &crossing(sources, plan) + &orphans(sources, plan)
}

/// Lists `impl` blocks that would stand in another crate than both their type and their trait.
fn orphans(sources: &Sources, plan: &Plan) -> String {
    let mut text = "## `impl` blocks that would be orphans\n\n".to_owned();
    for (id, module) in sources.modules.iter().enumerate() {
        let Some(here) = plan.crate_of(sources, id) else { continue };
        let home = |path: &[String]| match sources.resolve(id, path) {
            Some(Target::Item(to, _) | Target::Module(to)) => plan.crate_of(sources, to),
            Some(Target::Foreign(_)) | None => None,
        };
        for block in &module.implementations {
            let Some(of) = home(&block.of) else { continue };
            if of != here && block.of_trait.as_ref().is_none_or(|of_trait| home(of_trait) != Some(here)) {
                let of_trait = block.of_trait.as_ref().map_or("inherent".to_owned(), |path| path.join("::"));
                let at = module.file.display();
                text += &format!(
                    "- {at}:{}: {here} has {of_trait} of {} in {of}\n",
                    block.line,
                    block.of.join("::")
                );
            }
        }
    }
    text
}

/// Lists the items that are not `pub` today and are named across a planned border, by the crate that
/// would have to export them.
fn crossing(sources: &Sources, plan: &Plan) -> String {
    let mut items: BTreeMap<&str, BTreeMap<(ModuleId, String), BTreeSet<&str>>> = BTreeMap::new();
    for edge in sources.edges() {
        if let (Some(from), Some(to), Some(item)) =
            (plan.crate_of(sources, edge.from), plan.crate_of(sources, edge.to), edge.item)
            && from != to
            && sources.modules[edge.to].items.get(&item).is_some_and(|item| !item.public)
        {
            items.entry(to).or_default().entry((edge.to, item)).or_default().insert(from);
        }
    }
    let mut text = "## Items that are not `pub` and are named across a border\n\n".to_owned();
    for (of, items) in items {
        text += &format!("### {of}: {} items\n\n", items.len());
        for ((module, item), users) in items {
            let users: Vec<&str> = users.into_iter().collect();
            text += &format!("- {}::{item}, by {}\n", sources.path_of(module), users.join(", "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Plan, report};
    use crate::config::Config;
    use crate::source::from_text;
    use std::path::Path;

    #[test]
    fn edges_against_the_arrows_are_listed_with_their_items() {
        let config = Config::parse(
            "[arrows]\nhigh = [\"middle\"]\nmiddle = [\"low\"]\n[modules]\nhigh = [\"one\"]\nmiddle = [\"one::a\"]\nlow = [\"one::a::b\"]\n",
        )
        .expect("parses");
        let plan = Plan::new(&config);
        let sources = from_text(&[(
            "one",
            "pub struct Root; mod a { pub struct A; pub mod b { use super::A; fn f() { crate::Root; } impl A {} impl Default for B {} struct B; } use self::b; }",
        )]);
        let text = report(Path::new(""), &sources, &plan);
        assert!(text.contains("### low -> high: 1 places"), "{text}");
        assert!(text.contains("### low -> middle: 2 places"), "{text}");
        assert!(text.contains("one::a::b [one.rs] -> one: Root (1)"), "{text}");
        assert!(!text.contains("middle -> low"), "{text}");
        // both are `pub` already
        assert!(text.contains("across a border\n\n## `impl`"), "{text}");
        assert!(text.ends_with("one.rs:1: low has inherent of A in middle\n"), "{text}");
    }
}
