//! Cycles among sibling modules.
//!
//! Of two modules with the same parent, one has an edge to the other if code in it, or in a module under
//! it, names something that the other or a module under it defines. A name that the parent re-exports
//! counts for the module that defines it. Modules that reach each other are a component; the number that
//! may only go down is that of the modules in components, as a component that falls apart in two is
//! progress.

use super::Measure;
use crate::source::{Edge, ModuleId, Sources};
use std::collections::{BTreeMap, BTreeSet};

/// The largest component of which the fewest edges that close it are found exactly; of larger ones they
/// come from a greedy order.
const MAX_EXACT: usize = 14;

/// A group of siblings that reach each other.
pub(crate) struct Component {
    /// The module that declares them.
    pub(crate) parent: ModuleId,
    /// The siblings.
    pub(crate) modules: BTreeSet<ModuleId>,
    /// The edges without which the rest has no cycle: as few places in the code as possible.
    pub(crate) closing: Vec<Edge>,
}

pub(super) fn measure(sources: &Sources) -> Vec<Measure> {
    let components = cycles_among(sources);
    let mut places = Vec::new();
    let mut closing = 0;
    for component in &components {
        let names: Vec<&str> =
            component.modules.iter().map(|&id| sources.modules[id].name.as_str()).collect();
        let parent = &sources.modules[component.parent];
        places.push(format!(
            "{}:1: {} have cycles: {}",
            parent.file.display(),
            sources.path_of(component.parent),
            names.join(", ")
        ));
        for edge in &component.closing {
            closing += 1;
            places.push(format!("    {}", describe(sources, edge)));
        }
    }
    let count = components.iter().map(|component| component.modules.len()).sum();
    vec![Measure {
        name: "modules-in-cycles",
        title: "modules in cycles among siblings",
        count,
        places,
        note: Some(format!("{} components, closed by {closing} paths", components.len())),
    }]
}

/// Describes an edge in one line.
pub(crate) fn describe(sources: &Sources, edge: &Edge) -> String {
    let item = edge.item.as_ref().map_or(String::new(), |item| format!("::{item}"));
    format!(
        "{}: {} ({}) names {}{item}",
        edge.at,
        sources.path_of(edge.from),
        edge.within,
        sources.path_of(edge.to)
    )
}

/// Finds the cycles among siblings at every level of every crate.
pub(crate) fn cycles_among(sources: &Sources) -> Vec<Component> {
    let mut graphs: BTreeMap<ModuleId, BTreeMap<(ModuleId, ModuleId), Vec<Edge>>> = BTreeMap::new();
    for edge in sources.edges() {
        let (from, to) = (sources.line_of(edge.from), sources.line_of(edge.to));
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if common == 0 {
            continue;
        }
        if let (Some(&a), Some(&b)) = (from.get(common), to.get(common)) {
            graphs.entry(from[common - 1]).or_default().entry((a, b)).or_default().push(edge);
        }
    }
    let mut components = Vec::new();
    for (parent, graph) in graphs {
        for modules in strong_components(&graph.keys().copied().collect()) {
            let inner = graph.iter().filter(|((a, b), _)| modules.contains(a) && modules.contains(b));
            let weights: BTreeMap<(ModuleId, ModuleId), usize> =
                inner.map(|(&pair, edges)| (pair, edges.len())).collect();
            let closing = back_edges(&modules, &weights);
            let closing = closing.iter().flat_map(|pair| graph[pair].iter().cloned()).collect();
            components.push(Component { parent, modules, closing });
        }
    }
    components
}

/// Returns the sets of more than one node that reach each other.
fn strong_components(edges: &BTreeSet<(ModuleId, ModuleId)>) -> Vec<BTreeSet<ModuleId>> {
    let reach = |start: ModuleId| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            let next = edges.range((at, 0)..=(at, ModuleId::MAX)).map(|&(_, to)| to);
            open.extend(next.filter(|&to| seen.insert(to)));
        }
        seen
    };
    let reached: BTreeMap<ModuleId, BTreeSet<ModuleId>> = edges
        .iter()
        .map(|&(from, _)| from)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|from| (from, reach(from)))
        .collect();
    let mut components: Vec<BTreeSet<ModuleId>> = Vec::new();
    for (&node, from_node) in &reached {
        if from_node.contains(&node) && !components.iter().any(|component| component.contains(&node)) {
            let both =
                from_node.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(&node)));
            components.push(both.copied().collect());
        }
    }
    components
}

/// Returns the edges that go backwards in the best order of the nodes: the one with the fewest places.
fn back_edges(
    nodes: &BTreeSet<ModuleId>,
    weights: &BTreeMap<(ModuleId, ModuleId), usize>,
) -> Vec<(ModuleId, ModuleId)> {
    let nodes: Vec<ModuleId> = nodes.iter().copied().collect();
    let order =
        if nodes.len() <= MAX_EXACT { best_order(&nodes, weights) } else { greedy_order(&nodes, weights) };
    let position: BTreeMap<ModuleId, usize> =
        order.iter().enumerate().map(|(at, &node)| (node, at)).collect();
    weights.keys().copied().filter(|(from, to)| position[from] > position[to]).collect()
}

/// Finds the order with the least weight backwards, by the best order of every subset.
fn best_order(nodes: &[ModuleId], weights: &BTreeMap<(ModuleId, ModuleId), usize>) -> Vec<ModuleId> {
    let weight = |from: usize, to: usize| weights.get(&(nodes[from], nodes[to])).copied().unwrap_or(0);
    // of a set of nodes that stand first: the least weight backwards, and the last of them
    let mut best = vec![(usize::MAX, 0); 1 << nodes.len()];
    best[0] = (0, 0);
    for set in 0..best.len() {
        for next in (0..nodes.len()).filter(|next| set & 1 << next == 0) {
            let back: usize =
                (0..nodes.len()).filter(|to| set & 1 << to != 0).map(|to| weight(next, to)).sum();
            let total = best[set].0 + back;
            if total < best[set | 1 << next].0 {
                best[set | 1 << next] = (total, next);
            }
        }
    }
    let mut order = Vec::new();
    let mut set = best.len() - 1;
    while set != 0 {
        let last = best[set].1;
        order.push(nodes[last]);
        set &= !(1 << last);
    }
    order.reverse();
    order
}

/// Puts the node with the greatest surplus of edges to the remaining nodes next.
fn greedy_order(nodes: &[ModuleId], weights: &BTreeMap<(ModuleId, ModuleId), usize>) -> Vec<ModuleId> {
    let mut left: Vec<ModuleId> = nodes.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let surplus = |node: ModuleId| {
            let sum = |pairs: &dyn Fn(ModuleId) -> (ModuleId, ModuleId)| {
                left.iter()
                    .filter_map(|&other| weights.get(&pairs(other)))
                    .map(|&weight| weight as isize)
                    .sum::<isize>()
            };
            let (out, into) = (sum(&|other| (node, other)), sum(&|other| (other, node)));
            (into == 0, out - into)
        };
        let next = (0..left.len()).max_by_key(|&at| surplus(left[at])).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{back_edges, cycles_among, greedy_order, measure};
    use crate::source::from_text;
    use std::collections::{BTreeMap, BTreeSet};

    fn components(text: &str) -> Vec<String> {
        let sources = from_text(&[("one", text)]);
        let line = |component: &super::Component| {
            let names: Vec<&str> =
                component.modules.iter().map(|&id| sources.modules[id].name.as_str()).collect();
            let closing: Vec<usize> = component.closing.iter().map(|edge| edge.at.line).collect();
            format!("{}: {} by {closing:?}", sources.path_of(component.parent), names.join(" "))
        };
        cycles_among(&sources).iter().map(line).collect()
    }

    #[test]
    fn siblings_that_name_each_other_are_a_component() {
        let text = "mod a { pub struct A; fn f(_: super::b::B) {} fn g(_: super::b::B) {} }\nmod b { pub struct B; use crate::a::A; }\nmod c { use super::a::A; }";
        assert_eq!(components(text), ["one: a b by [2]"]);
    }

    #[test]
    fn a_name_that_the_parent_reexports_is_an_edge_to_the_module_that_defines_it() {
        let text = "pub use b::B; mod a { pub struct A; fn f(_: super::B) {} }\nmod b { pub struct B(super::a::A); }";
        assert_eq!(components(text).len(), 1);
    }

    #[test]
    fn what_the_parent_defines_is_no_edge_between_siblings() {
        assert!(
            components("struct S; mod a { use super::S; pub struct A; }\nmod b { use super::{S, a::A}; }")
                .is_empty()
        );
    }

    #[test]
    fn cycles_through_deeper_modules_belong_to_the_level_where_they_part() {
        let text = "mod a { pub mod x { pub struct X; use crate::b::B; } mod y { use super::x::X; } }\nmod b { pub struct B; use crate::a::x::X; fn f(_: X) {} }";
        assert_eq!(components(text), ["one: a b by [1]"]);
    }

    #[test]
    fn tests_close_no_cycle() {
        assert!(components("mod a { pub struct A; #[cfg(test)] mod tests { use crate::b::B; } }\nmod b { pub struct B(super::a::A); }").is_empty());
    }

    #[test]
    fn the_number_is_that_of_the_modules() {
        let sources = from_text(&[(
            "one",
            "mod a { pub struct A(super::b::B); } mod b { pub struct B(super::c::C); } mod c { pub struct C(super::a::A); }",
        )]);
        let measures = measure(&sources);
        assert_eq!(measures[0].count, 3);
        assert_eq!(measures[0].note.as_deref(), Some("1 components, closed by 1 paths"));
    }

    #[test]
    fn the_cheapest_edges_close_a_component() {
        let weights = BTreeMap::from([((0, 1), 5), ((1, 2), 1), ((2, 0), 4), ((1, 0), 2)]);
        let nodes = BTreeSet::from([0, 1, 2]);
        assert_eq!(back_edges(&nodes, &weights), [(1, 0), (1, 2)]);
    }

    #[test]
    fn a_greedy_order_keeps_all_nodes() {
        let weights = BTreeMap::from([((0, 1), 5), ((1, 2), 1), ((2, 0), 4)]);
        let order: BTreeSet<usize> = greedy_order(&[0, 1, 2], &weights).into_iter().collect();
        assert_eq!(order, BTreeSet::from([0, 1, 2]));
    }
}
