//! The edit of a declaration: members in a new order, with as few moves as it takes.

use crate::Language;
use crate::body::{Declaration, ElementKind, elements};
use crate::change::{Change, Edit, Refusal};
use crate::extent::{extents, head_end};
use crate::find::{Found, find};
use crate::items::{
    Insertion, Item, ItemKind, Part, display_name, items, join_alternatives, join_conditionals, positions,
};
use crate::lexer::{Token, tokens};
use crate::write::Writer;

/// The most members of a declaration.
const MEMBERS: usize = 1 << 14;

/// The distance up to which members are compared in the search for those that stay.
const NEAR: usize = 1 << 10;

/// Computes the edit of a source's text that carries out a requested change of one struct's declaration; moves as few
/// members as it can.
pub fn edit(text: &[u8], change: &Change) -> Result<Edit, Refusal> {
    if change.retyped.is_empty() && change.above.is_empty() && change.behind.is_empty() {
        return edit_layout(text, change);
    }
    // types first: their lines stay where the caller knows them, and the lines above come last but one
    let retyped = crate::retype::retype(text, change)?;
    let (surrounded, lines) = crate::retype::surround(&retyped, change)?;
    let moved = |line: u32| if line == 0 { 0 } else { line.saturating_add(lines) };
    let members = change.members.iter().map(|(name, line)| (name.clone(), moved(*line))).collect();
    let change = Change { line: moved(change.line), members, ..change.clone() };
    let new = edit_layout(&surrounded, &change)?.applied_to(&surrounded);
    Ok(crate::retype::difference(text, &new))
}

/// Computes the edit of a declaration's order, alignments and padding.
fn edit_layout(text: &[u8], change: &Change) -> Result<Edit, Refusal> {
    if change.members.len() != change.order.len() || change.members.len() > MEMBERS {
        return Err(Refusal::Order);
    }
    let position = positions(&change.order)?;
    let is_attribute_alone = change.order.is_sorted() && change.aligned.is_empty() && change.pads.is_empty();
    // what else Rust's compiler would lay out by itself
    if change.language == Language::Rust && change.align.is_some() && !is_attribute_alone {
        return Err(Refusal::Order);
    }
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let mut elements = elements(text, &tokens, found.body.clone(), change.language)?;
    if change.language == Language::Rust {
        elements = join_alternatives(text, elements)?;
    }
    let extents = extents(text, &tokens, &found.body, &elements);
    let insertions = insertions(text, change, &elements, &tokens)?;
    let all = items(text, &tokens, &found.body, &elements, &extents, change)?;
    if change.is_nothing() {
        return Ok(Edit { range: 0..0, text: Vec::new() });
    }
    if let Some(bytes) = change.align.filter(|_| change.language == Language::Rust) {
        return attribute(text, &tokens, &found, bytes)
            .ok_or_else(|| Refusal::Inseparable(display_name(&change.name)));
    }
    let all = join_conditionals(all, change)?;
    let (start, at_line_start) = head_end(&tokens, &found.body);
    let mut writer = Writer::new(text, insertions, indentation(text, &tokens, &found), at_line_start);
    let parts = parts(&mut writer, all, change, &position)?;
    let order = in_new_order(&parts, &position);
    let kept = longest_run(&order, &parts);
    writer.write(&parts, &order, &kept, &pads(change));
    let close = tokens.get(found.body.end).ok_or(Refusal::Unbalanced)?;
    let mut new = writer.finish();
    let mut end = close.span.start;
    if let Some(bytes) = change.align {
        end = close.span.end;
        new.extend_from_slice(format!("}} __attribute__((aligned({bytes})))").as_bytes());
    }
    Ok(Edit { range: start.min(end)..end, text: new })
}

fn pads(change: &Change) -> Vec<(usize, Vec<u8>)> {
    change.pads.iter().map(|(member, text)| (*member, text.clone().into_bytes())).collect()
}

/// Returns the attributes to add, and the comma that the last field of a Rust struct may lack.
fn insertions(
    text: &[u8],
    change: &Change,
    elements: &[crate::body::Element],
    tokens: &[Token],
) -> Result<Vec<Insertion>, Refusal> {
    let mut insertions = Vec::new();
    for (member, bytes) in &change.aligned {
        let (name, _) = change.members.get(*member).ok_or(Refusal::Order)?;
        let declarators = elements.iter().filter_map(|element| match &element.kind {
            ElementKind::Member(declaration) => Some(&declaration.declarators),
            _ => None,
        });
        let named = |span: &std::ops::Range<usize>| text.get(span.clone()) == Some(name);
        let mut candidates = declarators.flatten().filter(|one| one.name.as_ref().is_some_and(named));
        let declarator = candidates.next().ok_or_else(|| Refusal::Macro(display_name(name)))?;
        // two of one name are in alternatives
        if candidates.next().is_some()
            || declarator.is_bits
            || name.is_empty()
            || change.language == Language::Rust
        {
            return Err(Refusal::Inseparable(display_name(name)));
        }
        let at = match change.language {
            Language::Cpp => declarator.name.as_ref().map_or(declarator.span.end, |name| name.end),
            _ => declarator_end(tokens, declarator),
        };
        let attribute = match change.language {
            Language::Cpp => format!(" alignas({bytes})"),
            _ => format!(" __attribute__((aligned({bytes})))"),
        };
        insertions.push((at, attribute.into_bytes()));
    }
    if change.language == Language::Rust
        && change.order.last().is_some_and(|last| last + 1 != change.order.len())
        && let Some(last) = elements.last()
        && matches!(last.kind, ElementKind::Member(_))
        && text.get(last.core.clone()).is_some_and(|core| !core.ends_with(b","))
    {
        insertions.push((last.core.end, b",".to_vec()));
    }
    insertions.sort();
    Ok(insertions)
}

/// Returns the end of a declarator, before its initialiser.
fn declarator_end(tokens: &[Token], declarator: &crate::declarator::Declarator) -> usize {
    let inside =
        tokens.iter().filter(|token| declarator.span.contains(&token.span.start) && !token.is_trivia());
    let mut end = declarator.span.start;
    for token in inside {
        if token.is(b'=') {
            return end;
        }
        end = token.span.end;
    }
    declarator.span.end
}

/// Returns the attribute of an alignment above a struct of Rust; none where more than its visibility is in front
/// of it on its line.
fn attribute(text: &[u8], tokens: &[Token], found: &Found, bytes: u64) -> Option<Edit> {
    let keyword = tokens.get(found.keyword)?.span.start;
    let before = text.get(..keyword)?;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let visibility = before.get(start..)?.trim_ascii();
    let is_plain = visibility.is_empty()
        || visibility == b"pub"
        || visibility.starts_with(b"pub(") && visibility.ends_with(b")");
    let indentation = String::from_utf8_lossy(&indentation(text, tokens, found)).into_owned();
    let end = if text.get(keyword..)?.contains(&b'\r') { "\r\n" } else { "\n" };
    let line = format!("{indentation}#[repr(align({bytes}))]{end}");
    is_plain.then(|| Edit { range: start..start, text: line.into_bytes() })
}

/// Returns the blanks in front of the line that the declaration begins on.
fn indentation(text: &[u8], tokens: &[Token], found: &Found) -> Vec<u8> {
    let at = tokens.get(found.keyword).map_or(0, |token| token.span.start);
    let before = text.get(..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = text.get(start..).unwrap_or_default();
    line.iter().copied().take_while(|byte| matches!(byte, b' ' | b'\t')).collect()
}

/// Makes parts of items: declarations whose names are torn apart are cut.
fn parts(
    writer: &mut Writer<'_>,
    items: Vec<Item>,
    change: &Change,
    position: &[usize],
) -> Result<Vec<Part>, Refusal> {
    let mut parts: Vec<Part> = Vec::with_capacity(items.len());
    let mut open: Vec<usize> = Vec::new();
    for item in items {
        match &item.kind {
            ItemKind::If => {
                let conditionals = open.clone();
                open.push(parts.len());
                parts.push(Part { item, text: None, conditionals });
                continue;
            }
            ItemKind::EndIf => {
                open.pop();
            }
            ItemKind::Unit { members, declaration } => {
                let runs = runs(members, position, &change.pads);
                if runs.len() > 1 {
                    let name = members.first().and_then(|at| change.members.get(*at));
                    let name = name.map_or("a member".into(), |(name, _)| display_name(name));
                    match declaration {
                        None => return Err(Refusal::Macro(name)),
                        Some(declaration) if !declaration.splittable => {
                            return Err(Refusal::Inseparable(name));
                        }
                        Some(declaration) => {
                            cut(writer, &item, declaration, &runs, &open, &mut parts);
                            continue;
                        }
                    }
                }
            }
            _ => {}
        }
        parts.push(Part { item, text: None, conditionals: open.clone() });
    }
    Ok(parts)
}

/// Cuts members into those that follow each other in the new order without padding between.
fn runs(members: &[usize], position: &[usize], pads: &[(usize, String)]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for member in members {
        let at = position.get(*member).copied().unwrap_or_default();
        match runs.last_mut() {
            Some(run)
                if run.last().is_some_and(|last| {
                    position.get(*last).is_some_and(|place| place + 1 == at)
                        && pads.iter().all(|(before, _)| before != last)
                }) =>
            {
                run.push(*member);
            }
            _ => runs.push(vec![*member]),
        }
    }
    runs
}

fn cut(
    writer: &mut Writer<'_>,
    item: &Item,
    declaration: &Declaration,
    runs: &[Vec<usize>],
    open: &[usize],
    parts: &mut Vec<Part>,
) {
    // bits without a name stay with the name in front
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, declarator) in declaration.declarators.iter().enumerate() {
        match groups.last_mut() {
            Some(last) if declarator.name.is_none() => last.push(index),
            _ => groups.push(vec![index]),
        }
    }
    let mut groups = groups.into_iter();
    for (number, run) in runs.iter().enumerate() {
        let declarators: Vec<usize> = groups.by_ref().take(run.len()).flatten().collect();
        let is_last = number + 1 == runs.len();
        let text = writer.cut(item, declaration, &declarators, number == 0, is_last);
        let mut own = item.clone();
        own.kind = ItemKind::Unit { members: run.clone(), declaration: None };
        own.extent.starts_line |= number > 0;
        own.extent.ends_line |= !is_last;
        parts.push(Part { item: own, text: Some(text), conditionals: open.to_vec() });
    }
}

/// Returns the parts that are members, in the new order.
fn in_new_order(parts: &[Part], position: &[usize]) -> Vec<usize> {
    let first = |part: &Part| part.item.members().first().and_then(|member| position.get(*member)).copied();
    let mut order: Vec<(usize, usize)> = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| first(part).map(|position| (position, at)))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// Returns the parts that stay: the most of them that are in order already, and of as many those with more text,
/// or a paragraph of their own, which would be left empty.
fn longest_run(order: &[usize], parts: &[Part]) -> Vec<bool> {
    let weight = |part: usize| {
        let is_fixed = |at: Option<usize>| {
            at.and_then(|at| parts.get(at)).is_some_and(|part| matches!(part.item.kind, ItemKind::Fixed))
        };
        let is_alone = is_fixed(part.checked_sub(1)) && is_fixed(Some(part + 1));
        let length = parts.get(part).map_or(0, |part| part.item.extent.span.len());
        (1 << 40) + (u64::from(is_alone) << 12) + length.min(1 << 11) as u64
    };
    let mut best: Vec<(u64, Option<usize>)> = Vec::with_capacity(order.len());
    // all pairs up to a limit, then those near each other
    for (rank, part) in order.iter().enumerate() {
        let least = rank.saturating_sub(NEAR);
        let before =
            (least..rank).filter(|before| order[*before] < *part).max_by_key(|before| best[*before].0);
        best.push((weight(*part) + before.map_or(0, |before| best[before].0), before));
    }
    let mut kept = vec![false; parts.len()];
    let mut at = (0..best.len()).max_by_key(|rank| best[*rank].0);
    while let Some(rank) = at {
        kept[order[rank]] = true;
        at = best[rank].1;
    }
    kept
}
