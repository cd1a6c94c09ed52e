//! The new text of a body.

use crate::body::Declaration;
use crate::items::{Insertion, Item, ItemKind, Part};
use std::ops::Range;

/// Writer of the edited text of a struct's body: its parts in a new order, with the line ends, indentation and
/// conditionals that their new positions need.
pub(crate) struct Writer<'t> {
    text: &'t [u8],
    insertions: Vec<Insertion>,
    outer: Vec<u8>,
    out: Vec<u8>,
    // nothing but line ends so far, on the line of the brace or behind it
    at_line_start: bool,
    removed: bool,
    // the start of what an `#if` wrote, for each that is open, and whether anything came since
    open: Vec<(usize, usize, bool)>,
}

impl<'t> Writer<'t> {
    /// Creates a writer of a struct's edited body. `text` is the whole source, `insertions` are texts to insert into
    /// moved parts, `outer` is the indentation of the struct's declaration, `at_line_start` says whether the body
    /// starts on a new line.
    pub(crate) fn new(
        text: &'t [u8],
        insertions: Vec<Insertion>,
        outer: Vec<u8>,
        at_line_start: bool,
    ) -> Writer<'t> {
        Writer { text, insertions, outer, out: Vec::new(), at_line_start, removed: false, open: Vec::new() }
    }

    /// Returns the edited text of the struct's body.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn line_end(&self) -> &'static [u8] {
        if self.text.windows(2).any(|pair| pair == b"\r\n") { b"\r\n" } else { b"\n" }
    }

    /// Returns a range of the old text with what is put into it.
    fn slice(&self, range: Range<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(range.len());
        let mut at = range.start;
        for (place, text) in
            self.insertions.iter().filter(|(place, _)| range.start < *place && *place <= range.end)
        {
            out.extend_from_slice(self.text.get(at..*place).unwrap_or_default());
            out.extend_from_slice(text);
            at = *place;
        }
        out.extend_from_slice(self.text.get(at..range.end).unwrap_or_default());
        out
    }

    fn indentation(&self, item: &Item) -> Vec<u8> {
        let before = self.text.get(..item.core.start).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.get(start..).unwrap_or_default();
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        // the line of the brace has the indentation of the struct
        match blanks == line.len() || blanks > self.outer.len() {
            true => line[..blanks].to_vec(),
            false => self.inner(),
        }
    }

    fn inner(&self) -> Vec<u8> {
        let unit: &[u8] = if self.outer.starts_with(b" ") { b"    " } else { b"\t" };
        [&self.outer, unit].concat()
    }

    /// Returns the text of a separate declaration of some of the names in a declaration of several: `int a, b;` cut
    /// into `int a;` and `int b;`. `declarators` are the names' indices; the first and the last cut keep the comments
    /// above and behind.
    pub(crate) fn cut(
        &mut self,
        item: &Item,
        declaration: &Declaration,
        declarators: &[usize],
        is_first: bool,
        is_last: bool,
    ) -> Vec<u8> {
        let all = &declaration.declarators;
        let mut out = Vec::new();
        match is_first {
            true => out.extend(self.slice(item.extent.span.start..item.core.start)),
            false => out.extend(self.indentation(item)),
        }
        let specifiers = self.slice(declaration.specifiers.clone());
        let gap = all.first().map_or(declaration.specifiers.end, |first| first.span.start);
        out.extend_from_slice(&specifiers);
        let between = self.text.get(declaration.specifiers.end..gap).unwrap_or_default();
        let is_blank = !between.is_empty() && between.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        out.extend_from_slice(if is_blank { between } else { b" " });
        for comment in comments(between) {
            out.extend_from_slice(comment);
            out.extend_from_slice(if comment.starts_with(b"//") { self.line_end() } else { b" " });
        }
        let (Some(first), Some(last)) = (declarators.first(), declarators.last()) else { return out };
        let (Some(from), Some(to)) = (all.get(*first), all.get(*last)) else { return out };
        out.extend(self.slice(from.span.start..to.span.end));
        if is_last {
            out.extend(self.slice(to.span.end..item.extent.span.end));
            return out;
        }
        out.push(b';');
        let next = all.get(last + 1).map_or(item.core.end, |next| next.span.start);
        for comment in comments(self.text.get(to.span.end..next).unwrap_or_default()) {
            out.push(b' ');
            out.extend_from_slice(comment);
            if comment.starts_with(b"//") {
                out.extend_from_slice(self.line_end());
            }
        }
        if !out.ends_with(b"\n") {
            out.extend_from_slice(self.line_end());
        }
        out
    }

    /// Writes all parts of the struct's body: parts marked in `kept`, and text that stays, in their old order; each
    /// moved part after the part that precedes it in `order`; `pads` after the members that they follow.
    pub(crate) fn write(
        &mut self,
        parts: &[Part],
        order: &[usize],
        kept: &[bool],
        pads: &[(usize, Vec<u8>)],
    ) {
        let first_kept = order.iter().position(|part| kept.get(*part) == Some(&true)).unwrap_or(order.len());
        for (index, part) in parts.iter().enumerate() {
            let around = &part.conditionals;
            match &part.item.kind {
                ItemKind::Fixed => self.fixed(part, index + 1 == parts.len()),
                ItemKind::If => {
                    let start = self.out.len();
                    self.piece(part, &[]);
                    self.open.push((start, self.out.len(), false));
                }
                ItemKind::Else => self.piece(part, &[]),
                ItemKind::EndIf => self.end_conditional(part),
                ItemKind::Unit { .. } if kept.get(index) != Some(&true) => {
                    self.removed = true;
                }
                ItemKind::Unit { .. } => {
                    let rank = order.iter().position(|at| *at == index).unwrap_or(first_kept);
                    if rank == first_kept {
                        for moved in order.get(..first_kept).unwrap_or_default() {
                            self.unit(parts, *moved, around, pads);
                        }
                    }
                    self.unit(parts, index, around, pads);
                    let followers = order.get(rank + 1..).unwrap_or_default();
                    for moved in followers.iter().take_while(|part| kept.get(**part) != Some(&true)) {
                        self.unit(parts, *moved, around, pads);
                    }
                }
            }
        }
    }

    /// Writes members, within the conditionals that are around them wherever they come from.
    fn unit(&mut self, parts: &[Part], index: usize, around: &[usize], pads: &[(usize, Vec<u8>)]) {
        let Some(part) = parts.get(index) else { return };
        let own = &part.conditionals;
        let common = own.iter().zip(around).take_while(|(a, b)| a == b).count();
        let (left, entered) =
            (around.get(common..).unwrap_or_default(), own.get(common..).unwrap_or_default());
        left.iter().for_each(|_| self.directive(b"#endif"));
        for conditional in entered {
            let core = parts.get(*conditional).map(|part| part.item.core.clone()).unwrap_or_default();
            let text = self.text.get(core).unwrap_or_default().to_vec();
            self.directive(&text);
        }
        self.piece(part, pads);
        entered.iter().for_each(|_| self.directive(b"#endif"));
        for conditional in left {
            let core = parts.get(*conditional).map(|part| part.item.core.clone()).unwrap_or_default();
            let text = self.text.get(core).unwrap_or_default().to_vec();
            self.directive(&text);
        }
        self.open.iter_mut().for_each(|open| open.2 = true);
    }

    fn directive(&mut self, text: &[u8]) {
        self.begin_line();
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(self.line_end());
        self.at_line_start = true;
    }

    fn begin_line(&mut self) {
        if !self.at_line_start {
            while self.out.last().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
                self.out.pop();
            }
            self.out.extend_from_slice(self.line_end());
            self.at_line_start = true;
        }
    }

    /// Ends a conditional; one that has lost all of its members is taken out.
    fn end_conditional(&mut self, part: &Part) {
        let Some((start, end, has_members)) = self.open.pop() else { return };
        let inside = self.out.get(end..).unwrap_or_default();
        if !has_members && inside.iter().all(u8::is_ascii_whitespace) {
            self.out.truncate(start);
            self.at_line_start = true;
            self.removed = true;
            return;
        }
        self.piece(part, &[]);
    }

    /// Writes a member or a directive with its comments.
    fn piece(&mut self, part: &Part, pads: &[(usize, Vec<u8>)]) {
        let extent = &part.item.extent;
        let text = part.text.clone().unwrap_or_else(|| self.slice(extent.span.clone()));
        let is_directive = !matches!(part.item.kind, ItemKind::Unit { .. });
        match (extent.starts_line, self.at_line_start) {
            (true, false) if self.out.is_empty() && !is_directive => {
                self.out.push(b' ');
                self.out.extend_from_slice(start_trimmed(&text));
            }
            (true, false) => {
                self.begin_line();
                self.out.extend_from_slice(&text);
            }
            (false, true) => {
                self.out.extend(self.indentation(&part.item));
                self.out.extend_from_slice(start_trimmed(&text));
            }
            (false, false) if !text.starts_with(b" ") && !text.starts_with(b"\t") && !self.out.is_empty() => {
                self.out.push(b' ');
                self.out.extend_from_slice(&text);
            }
            _ => self.out.extend_from_slice(&text),
        }
        self.at_line_start = self.out.ends_with(b"\n");
        for (_, pad) in pads.iter().filter(|(member, _)| part.item.members().contains(member)) {
            match self.at_line_start {
                true => {
                    self.out.extend(self.indentation(&part.item));
                    self.out.extend_from_slice(pad);
                    self.out.extend_from_slice(self.line_end());
                }
                false => {
                    self.out.push(b' ');
                    self.out.extend_from_slice(pad);
                }
            }
        }
    }

    /// Writes text that stays, without the blank line that would be a second one.
    fn fixed(&mut self, part: &Part, is_last: bool) {
        let mut text = self.slice(part.item.extent.span.clone());
        let doubles = std::mem::take(&mut self.removed) && (self.out.is_empty() || ends_blank(&self.out));
        if doubles && self.at_line_start | self.out.is_empty() {
            let blank = text
                .iter()
                .position(|byte| *byte == b'\n')
                .filter(|at| text[..*at].iter().all(u8::is_ascii_whitespace));
            if let Some(at) = blank {
                text.drain(..=at);
            }
        }
        if is_last && text.iter().all(u8::is_ascii_whitespace) && ends_blank(&self.out) {
            let end = if self.out.ends_with(b"\r\n") { 2 } else { 1 };
            self.out.truncate(self.out.len() - end);
        }
        match (part.item.extent.starts_line, self.at_line_start) {
            (true, false) if !self.out.is_empty() => self.begin_line(),
            (false, true) if is_last => {
                text = [&self.outer, start_trimmed(&text)].concat();
            }
            _ => {}
        }
        self.out.extend_from_slice(&text);
        if !text.is_empty() {
            self.at_line_start = text.ends_with(b"\n");
        }
    }
}

/// Returns `true` if a text ends with a blank line.
fn ends_blank(text: &[u8]) -> bool {
    let Some(text) = text.strip_suffix(b"\n") else { return false };
    let line = text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    text.len() > line.len() && line.iter().all(u8::is_ascii_whitespace)
}

fn start_trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// Returns the comments of a text that is blanks, comments and commas.
fn comments(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match rest {
            [b'/', b'/', ..] => {
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                found.push(rest[..length].trim_ascii_end());
                length
            }
            [b'/', b'*', ..] => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                let length = end.map_or(rest.len(), |end| end + 4);
                found.push(&rest[..length]);
                length
            }
            _ => 1,
        };
        at += length;
    }
    found
}
