//! Reads the crates of the workspace.

use super::references::{Collector, is_test};
use super::{
    Crate, CrateId, Implementation, Import, Item, ItemKind, Location, Module, ModuleId, PathUse, Sources,
};
use crate::config::Config;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Returns the files under version control that match patterns of `git ls-files`, relative to the root. Links are left
/// out: crates share test data by them, and their targets are files of their own.
pub(crate) fn files(root: &Path, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
        .args(patterns)
        .current_dir(root)
        .output()
        .context("git ls-files: cannot run git")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let mut files: Vec<PathBuf> = String::from_utf8(output.stdout)?
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|file| root.join(file).symlink_metadata().is_ok_and(|found| found.is_file()))
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads all members of the workspace at `root`.
pub(crate) fn load(root: &Path) -> Result<Sources> {
    let manifest = Config::read(&root.join("Cargo.toml"))?;
    let members =
        manifest.lists("workspace").remove("members").context("Cargo.toml: no workspace members")?;
    let mut sources = Sources::default();
    for member in &members {
        let folder = PathBuf::from(member);
        let manifest = Config::read(&root.join(&folder).join("Cargo.toml"))?;
        let package = manifest.texts("package").remove("name");
        let package = package.with_context(|| format!("{member}/Cargo.toml: no package name"))?;
        for file in ["src/lib.rs", "src/main.rs"] {
            let file = folder.join(file);
            if root.join(&file).is_file() {
                let name = package.replace('-', "_");
                let of = sources.crates.len();
                if file.ends_with("lib.rs") {
                    sources.libraries.insert(name.clone(), of);
                }
                sources.crates.push(Crate { package: package.clone(), root: sources.modules.len() });
                let mut reader = Reader { base: root, sources: &mut sources, of };
                reader.file(None, &name, true, &file)?;
            }
        }
    }
    Ok(sources)
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))
}

/// Reads crates whose modules are all in one text.
#[cfg(test)]
pub(crate) fn from_text(crates: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (of, (name, text)) in crates.iter().enumerate() {
        sources.libraries.insert((*name).to_owned(), of);
        sources.crates.push(Crate { package: (*name).to_owned(), root: sources.modules.len() });
        let file = syn::parse_file(text).expect("the test's text parses");
        let mut reader = Reader { base: Path::new(""), sources: &mut sources, of };
        reader
            .module(None, name, true, Path::new(&format!("{name}.rs")), &file.items)
            .expect("no other files");
    }
    sources
}

struct Reader<'a> {
    base: &'a Path,
    sources: &'a mut Sources,
    of: CrateId,
}

impl Reader<'_> {
    fn file(&mut self, parent: Option<ModuleId>, name: &str, public: bool, file: &Path) -> Result<ModuleId> {
        let text = read(&self.base.join(file))?;
        let syntax = syn::parse_file(&text)
            .map_err(|error| anyhow::anyhow!("{}:{}: {error}", file.display(), error.span().start().line))?;
        self.module(parent, name, public, file, &syntax.items)
    }

    fn module(
        &mut self,
        parent: Option<ModuleId>,
        name: &str,
        public: bool,
        file: &Path,
        items: &[syn::Item],
    ) -> Result<ModuleId> {
        let id = self.sources.modules.len();
        self.sources.modules.push(Module {
            of: self.of,
            parent,
            name: name.to_owned(),
            file: file.to_owned(),
            public,
            children: BTreeMap::new(),
            items: BTreeMap::new(),
            imports: Default::default(),
            globs: Vec::new(),
            uses: Vec::new(),
            implementations: Vec::new(),
        });
        for item in items {
            if !is_test(attributes(item)) {
                self.item(id, item)?;
            }
        }
        Ok(id)
    }

    fn item(&mut self, id: ModuleId, item: &syn::Item) -> Result<()> {
        if let syn::Item::Mod(declared) = item {
            let name = declared.ident.to_string();
            let public = matches!(declared.vis, syn::Visibility::Public(_));
            let child = match &declared.content {
                Some((_, items)) => {
                    let file = self.sources.modules[id].file.clone();
                    self.module(Some(id), &name, public, &file, items)?
                }
                None => {
                    let file = self.find(id, &name, &declared.attrs)?;
                    self.file(Some(id), &name, public, &file)?
                }
            };
            self.sources.modules[id].children.insert(name, child);
            return Ok(());
        }
        if let syn::Item::Use(declaration) = item {
            self.import(id, declaration);
            return Ok(());
        }
        let file = self.sources.modules[id].file.clone();
        let name = item_name(item);
        let mut collector = Collector::new(name.as_deref().unwrap_or("impl"));
        collector.visit_item(item);
        for declaration in &collector.inner_imports {
            self.import(id, declaration);
        }
        let module = &mut self.sources.modules[id];
        module.uses.extend(collector.found);
        if let syn::Item::Impl(block) = item {
            if let syn::Type::Path(path) = &*block.self_ty {
                module.implementations.push(Implementation {
                    of: segments(&path.path),
                    of_trait: block.trait_.as_ref().map(|(path, _)| segments(path)),
                    line: block.impl_token.span.start().line,
                });
            }
            // public methods belong to the signature of their type, where that is of this module
            if block.trait_.is_none()
                && let syn::Type::Path(path) = &*block.self_ty
                && let Some(of) =
                    path.path.segments.last().and_then(|last| module.items.get_mut(&last.ident.to_string()))
            {
                for method in &block.items {
                    if let syn::ImplItem::Fn(method) = method
                        && matches!(method.vis, syn::Visibility::Public(_))
                        && !is_test(&method.attrs)
                    {
                        of.signature
                            .extend(paths(&method.sig.ident.to_string(), |c| c.visit_signature(&method.sig)));
                    }
                }
            }
        } else if let Some(name) = name {
            module.items.insert(name, describe(item, &file));
        }
        Ok(())
    }

    /// Finds the file of a module that is declared without a body.
    fn find(&self, id: ModuleId, name: &str, attributes: &[syn::Attribute]) -> Result<PathBuf> {
        let declaring = &self.sources.modules[id];
        let folder = declaring.file.parent().unwrap_or(Path::new(""));
        for attribute in attributes {
            if let syn::Meta::NameValue(pair) = &attribute.meta
                && pair.path.is_ident("path")
                && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value
            {
                return Ok(folder.join(path.value()));
            }
        }
        let stem = declaring.file.file_stem().unwrap_or_default();
        let folder = if stem == "mod" || stem == "lib" || stem == "main" {
            folder.to_owned()
        } else {
            folder.join(stem)
        };
        let alone = folder.join(format!("{name}.rs"));
        let in_folder = folder.join(name).join("mod.rs");
        [alone, in_folder]
            .into_iter()
            .find(|file| self.base.join(file).is_file())
            .with_context(|| format!("{}: no file for the module {name}", declaring.file.display()))
    }

    fn import(&mut self, id: ModuleId, declaration: &syn::ItemUse) {
        let module = &mut self.sources.modules[id];
        let public = matches!(declaration.vis, syn::Visibility::Public(_));
        let mut leaves = Vec::new();
        let start = if declaration.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        flatten(start, &declaration.tree, &mut leaves);
        for (path, name, line) in leaves {
            module.uses.push(PathUse { path: path.clone(), line, within: "use".to_owned() });
            let import = Import { path, public };
            match name {
                Some(name) => module.imports.entry(name).or_default().push(import),
                None => module.globs.push(import),
            }
        }
    }
}

/// Lists the paths of a `use` tree with the name that each gets; none for a glob.
fn flatten(
    mut path: Vec<String>,
    tree: &syn::UseTree,
    leaves: &mut Vec<(Vec<String>, Option<String>, usize)>,
) {
    let line = tree.span().start().line;
    match tree {
        syn::UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(path, &step.tree, leaves);
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            leaves.push((path.clone(), path.last().cloned(), line))
        }
        syn::UseTree::Name(name) => {
            path.push(name.ident.to_string());
            leaves.push((path, Some(name.ident.to_string()), line));
        }
        syn::UseTree::Rename(rename) => {
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            leaves.push((path, Some(rename.rename.to_string()), line));
        }
        syn::UseTree::Glob(_) => leaves.push((path, None, line)),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(path.clone(), tree, leaves)),
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn item_name(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Const(item) => item.ident.to_string(),
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Fn(item) => item.sig.ident.to_string(),
        syn::Item::Macro(item) => item.ident.as_ref()?.to_string(),
        syn::Item::Static(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Trait(item) => item.ident.to_string(),
        syn::Item::Type(item) => item.ident.to_string(),
        syn::Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn paths(within: &str, visit: impl FnOnce(&mut Collector)) -> Vec<PathUse> {
    let mut collector = Collector::new(within);
    visit(&mut collector);
    collector.found
}

fn describe(item: &syn::Item, file: &Path) -> Item {
    let (kind, visibility) = match item {
        syn::Item::Const(item) => (ItemKind::Other, Some(&item.vis)),
        syn::Item::Enum(item) => (ItemKind::Type, Some(&item.vis)),
        syn::Item::Fn(item) => (ItemKind::Other, Some(&item.vis)),
        syn::Item::Static(item) => (ItemKind::Other, Some(&item.vis)),
        syn::Item::Struct(item) => (ItemKind::Type, Some(&item.vis)),
        syn::Item::Trait(item) => (ItemKind::Type, Some(&item.vis)),
        syn::Item::Type(item) => (ItemKind::Type, Some(&item.vis)),
        syn::Item::Union(item) => (ItemKind::Type, Some(&item.vis)),
        _ => (ItemKind::Other, None),
    };
    let fields: Vec<&syn::Field> = match item {
        syn::Item::Struct(item) => item.fields.iter().collect(),
        syn::Item::Union(item) => item.fields.named.iter().collect(),
        _ => Vec::new(),
    };
    let is_public = |vis: &syn::Visibility| matches!(vis, syn::Visibility::Public(_));
    let location = |line| Location { file: file.to_owned(), line };
    let named = |(number, field): (usize, &&syn::Field)| {
        let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
        is_public(&field.vis).then(|| (name, location(field.span().start().line)))
    };
    let name = item_name(item).unwrap_or_default();
    let signature = paths(&name, |collector| match item {
        syn::Item::Const(item) => collector.visit_type(&item.ty),
        syn::Item::Static(item) => collector.visit_type(&item.ty),
        syn::Item::Fn(item) => collector.visit_signature(&item.sig),
        syn::Item::Struct(item) => {
            collector.visit_generics(&item.generics);
            fields
                .iter()
                .filter(|field| is_public(&field.vis))
                .for_each(|field| collector.visit_type(&field.ty));
        }
        syn::Item::Union(_) => {
            fields
                .iter()
                .filter(|field| is_public(&field.vis))
                .for_each(|field| collector.visit_type(&field.ty));
        }
        syn::Item::Macro(_) => {}
        other => collector.visit_item(other),
    });
    Item {
        kind,
        at: location(item.span().start().line),
        public: visibility.is_some_and(is_public),
        public_fields: fields.iter().enumerate().filter_map(named).collect(),
        signature,
    }
}

#[cfg(test)]
mod tests {
    use super::from_text;

    #[test]
    fn leaves_out_tests() {
        let sources = from_text(&[("one", "mod a {} #[cfg(test)] mod tests { use super::a; }")]);
        assert_eq!(sources.modules.len(), 2);
        let sources =
            from_text(&[("one", "#[cfg(all(test, not(loom)))] mod t {} #[cfg(not(test))] mod kept {}")]);
        assert_eq!(sources.modules.len(), 2);
    }

    #[test]
    fn reachable_items_are_those_that_can_be_named_from_outside() {
        let sources = from_text(&[(
            "one",
            "mod hidden { pub struct Exported; pub struct Unnamed; } pub use hidden::Exported;
             pub mod open { pub struct There; pub(crate) struct Inner; struct Own; pub mod deep { pub type Alias = u8; } }
             pub mod all { pub use super::globbed::*; } mod globbed { pub fn by_glob() {} }",
        )]);
        let names: Vec<String> = sources.reachable(0).into_iter().map(|(_, name)| name).collect();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(sorted, ["Alias", "Exported", "There", "by_glob"], "{names:?}");
    }

    #[test]
    fn a_facade_counts_nothing_twice() {
        let sources =
            from_text(&[("one", "pub struct Type { pub field: u8 }"), ("two", "pub use one::Type;")]);
        assert_eq!(sources.reachable(0).len(), 1);
        assert_eq!(sources.reachable(1).len(), 0);
    }

    #[test]
    fn public_fields_are_those_with_pub() {
        let sources = from_text(&[(
            "one",
            "pub struct A { pub a: u8, b: u8, pub(crate) c: u8 } pub struct B(pub u8, u8);",
        )]);
        let fields =
            |name: &str| sources.modules[0].items[name].public_fields.iter().map(|(name, _)| name.clone());
        assert_eq!(fields("A").collect::<Vec<_>>(), ["a"]);
        assert_eq!(fields("B").collect::<Vec<_>>(), ["0"]);
    }
}
