//! The items of a body: units of members that move, and text that stays.

use crate::body::{Declaration, Element, ElementKind};
use crate::change::{Change, Refusal};
use crate::extent::Extent;
use crate::lexer::Token;
use std::collections::HashSet;
use std::ops::Range;

/// A part of a struct's body as an edit treats it: members that may move, the start or end of a conditional (`#if`), or
/// text that stays where it is; with its bytes and its comments.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The kind of the part: members, a conditional's start or end, or text that stays.
    pub(crate) kind: ItemKind,
    /// The bytes of the part with its comments.
    pub(crate) extent: Extent,
    /// The bytes of the part without its comments.
    pub(crate) core: Range<usize>,
}

/// The kinds of parts of a struct's body in an edit: members that may move, `#if`, `#else`, `#endif`, and text that
/// stays where it is.
#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    /// Text that stays where it is.
    Fixed,
    /// Members, by their indices in today's order; the declaration, if it may be cut.
    Unit { members: Vec<usize>, declaration: Option<Declaration> },
    /// The start of a conditional.
    If,
    /// An alternative of a conditional.
    Else,
    /// The end of a conditional.
    EndIf,
}

impl Item {
    /// Returns the indices, in the present order, of the struct's members that this part of its body declares; none for
    /// conditionals and text that stays.
    pub(crate) fn members(&self) -> &[usize] {
        match &self.kind {
            ItemKind::Unit { members, .. } => members,
            _ => &[],
        }
    }
}

/// Converts the elements of a struct's body to the parts that an edit moves or leaves, and matches the declared members
/// with those that `change` names. Fails with [`Refusal::Members`] if they differ.
pub(crate) fn items(
    text: &[u8],
    tokens: &[Token],
    body: &Range<usize>,
    elements: &[Element],
    extents: &[Extent],
    change: &Change,
) -> Result<Vec<Item>, Refusal> {
    let mut items: Vec<Item> = Vec::new();
    let (mut at, mut at_line_start) = crate::extent::head_end(tokens, body);
    let mut known = 0;
    for (element, extent) in elements.iter().zip(extents) {
        if extent.span.start > at {
            items.push(fixed(at..extent.span.start, at_line_start, extent.starts_line));
        }
        let kind = match &element.kind {
            ElementKind::If => ItemKind::If,
            ElementKind::Else => ItemKind::Else,
            ElementKind::EndIf => ItemKind::EndIf,
            ElementKind::Other => ItemKind::Fixed,
            ElementKind::Define => match items.last_mut() {
                // the values of the member in front
                Some(last)
                    if last.extent.span.end == extent.span.start
                        && matches!(last.kind, ItemKind::Unit { .. }) =>
                {
                    last.extent.span.end = extent.span.end;
                    last.extent.ends_line = extent.ends_line;
                    (at, at_line_start) = (extent.span.end, extent.ends_line);
                    continue;
                }
                _ => ItemKind::Fixed,
            },
            ElementKind::Macro => {
                let lines = lines(text, &element.core);
                let count =
                    change.members.iter().skip(known).take_while(|(_, line)| lines.contains(line)).count();
                unit(&mut known, count, None)
            }
            ElementKind::Member(declaration) => member(text, element, declaration, change, &mut known)?,
        };
        items.push(Item { kind, extent: extent.clone(), core: element.core.clone() });
        (at, at_line_start) = (extent.span.end, extent.ends_line);
    }
    if let Some((name, _)) = change.members.get(known) {
        return Err(Refusal::Members(display_name(name), "no more members".into()));
    }
    let end = tokens.get(body.end).map_or(text.len(), |token| token.span.start);
    items.push(fixed(at..end, at_line_start, false));
    Ok(items)
}

fn fixed(span: Range<usize>, starts_line: bool, ends_line: bool) -> Item {
    Item { kind: ItemKind::Fixed, core: span.clone(), extent: Extent { span, starts_line, ends_line } }
}

fn unit(known: &mut usize, count: usize, declaration: Option<Declaration>) -> ItemKind {
    let members = (*known..*known + count).collect();
    *known += count;
    if count == 0 { ItemKind::Fixed } else { ItemKind::Unit { members, declaration } }
}

/// Finds the members of a declaration among those that the caller named.
fn member(
    text: &[u8],
    element: &Element,
    declaration: &Declaration,
    change: &Change,
    known: &mut usize,
) -> Result<ItemKind, Refusal> {
    let names: Vec<&[u8]> = declaration
        .declarators
        .iter()
        // bits without a name are no member
        .filter(|declarator| declarator.name.is_some() || !declarator.is_bits)
        .map(|declarator| declarator.name.clone().and_then(|name| text.get(name)).unwrap_or_default())
        .collect();
    let expected = change.members.get(*known..).unwrap_or_default();
    let lines = lines(text, &element.core);
    let is_here = |line: u32| line == 0 || lines.contains(&line);
    let matches = expected.len() >= names.len()
        && expected
            .iter()
            .zip(&names)
            .all(|((known, line), name)| known == name && (!element.optional || is_here(*line)));
    if matches {
        return Ok(unit(known, names.len(), Some(declaration.clone())));
    }
    if element.optional {
        return Ok(ItemKind::Fixed);
    }
    // a macro that looks like a declaration: its members are on its lines
    let on_lines = expected.iter().take_while(|(_, line)| *line != 0 && lines.contains(line)).count();
    let next_matches =
        |count: usize| count > 0 && expected.get(count).is_none_or(|(_, line)| !lines.contains(line));
    if names.len() == 1
        && next_matches(on_lines)
        && !names[0].is_empty()
        && !expected.iter().any(|(name, _)| name == names[0])
    {
        return Ok(unit(known, on_lines, None));
    }
    let differing =
        expected.iter().map(|(name, _)| name.as_slice()).zip(&names).find(|(known, name)| known != *name);
    Err(match differing {
        Some((known, name)) => Refusal::Members(display_name(known), display_name(name)),
        None => Refusal::Members(
            "no more members".into(),
            display_name(names.get(expected.len()).copied().unwrap_or_default()),
        ),
    })
}

/// Returns the lines of a range, counted from 1.
fn lines(text: &[u8], span: &Range<usize>) -> std::ops::RangeInclusive<u32> {
    let count = |end: usize| {
        let before = text.get(..end).unwrap_or_default();
        u32::try_from(before.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX - 1) + 1
    };
    count(span.start)..=count(span.end)
}

/// Formats the name of a struct's member for messages; "an unnamed member" if it is empty.
pub(crate) fn display_name(name: &[u8]) -> String {
    if name.is_empty() { "an unnamed member".into() } else { String::from_utf8_lossy(name).into_owned() }
}

/// Joins the fields of a Rust struct that follow each other under one name into one element: alternatives, of which
/// `#[cfg]` leaves one. Fails with [`Refusal::Conditional`] if other fields stand between them.
pub(crate) fn join_alternatives(text: &[u8], elements: Vec<Element>) -> Result<Vec<Element>, Refusal> {
    let name = |element: &Element| match &element.kind {
        ElementKind::Member(declaration) if element.optional => {
            declaration.declarators.first().and_then(|field| text.get(field.name.clone()?))
        }
        _ => None,
    };
    let mut joined: Vec<Element> = Vec::with_capacity(elements.len());
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for element in elements {
        match (name(&element), joined.last_mut()) {
            (Some(own), Some(last)) if name(last) == Some(own) => last.core.end = element.core.end,
            (Some(own), _) if !seen.insert(own) => return Err(Refusal::Conditional(display_name(own))),
            _ => joined.push(element),
        }
    }
    Ok(joined)
}

/// Merges the parts from an `#if` to its `#endif` into one part wherever its members follow each other in the new
/// order; other conditionals stay several parts. Fails with [`Refusal::Conditional`] if one with an `#else` would be
/// torn apart.
pub(crate) fn join_conditionals(items: Vec<Item>, change: &Change) -> Result<Vec<Item>, Refusal> {
    let position = positions(&change.order)?;
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    let mut at = 0;
    while let Some(item) = items.get(at) {
        if !matches!(item.kind, ItemKind::If) {
            joined.push(item.clone());
            at += 1;
            continue;
        }
        let (end, has_alternatives) = conditional_end(&items, at).ok_or(Refusal::Unbalanced)?;
        let inside = items.get(at..=end).unwrap_or_default();
        let members: Vec<usize> = inside.iter().flat_map(Item::members).copied().collect();
        let together = members.windows(2).all(|pair| match pair {
            [a, b] => position.get(*a).zip(position.get(*b)).is_some_and(|(a, b)| a + 1 == *b),
            _ => true,
        });
        let last = inside.last().unwrap_or(item);
        if together {
            let extent = Extent {
                span: item.extent.span.start..last.extent.span.end,
                ends_line: last.extent.ends_line,
                ..item.extent.clone()
            };
            let kind = if members.is_empty() {
                ItemKind::Fixed
            } else {
                ItemKind::Unit { members, declaration: None }
            };
            joined.push(Item { kind, extent, core: item.core.start..last.core.end });
            at = end + 1;
        } else if has_alternatives {
            let name = members
                .first()
                .and_then(|at| change.members.get(*at))
                .map_or("a member".into(), |(name, _)| display_name(name));
            return Err(Refusal::Conditional(name));
        } else {
            joined.push(item.clone());
            at += 1;
        }
    }
    Ok(joined)
}

/// Returns the index of the matching `#endif`, and whether there are alternatives.
fn conditional_end(items: &[Item], start: usize) -> Option<(usize, bool)> {
    let mut depth = 0_u32;
    let mut has_alternatives = false;
    for (index, item) in items.iter().enumerate().skip(start) {
        match item.kind {
            ItemKind::If => depth += 1,
            ItemKind::Else if depth == 1 => has_alternatives = true,
            ItemKind::EndIf => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((index, has_alternatives));
                }
            }
            _ => {}
        }
    }
    None
}

/// Inverts a new order of a struct's members: returns each member's position in it, by the member's present index.
/// Fails with [`Refusal::Order`] if `order` is no permutation.
pub(crate) fn positions(order: &[usize]) -> Result<Vec<usize>, Refusal> {
    let mut position = vec![usize::MAX; order.len()];
    for (at, member) in order.iter().enumerate() {
        match position.get_mut(*member) {
            Some(slot) if *slot == usize::MAX => *slot = at,
            _ => return Err(Refusal::Order),
        }
    }
    Ok(position)
}

/// A part of a struct's body that an edit moves or leaves as a whole, with the conditionals (`#if`) around it.
pub(crate) struct Part {
    /// The part of the body: its kind and its bytes in the old text.
    pub(crate) item: Item,
    /// The new text of the part; none if it keeps the old one.
    pub(crate) text: Option<Vec<u8>>,
    /// The conditionals around the part, by the indices of their parts.
    pub(crate) conditionals: Vec<usize>,
}

/// Text that an edit inserts into a struct's body: (byte offset in the old text, new text).
pub(crate) type Insertion = (usize, Vec<u8>);
