//! Transfers: objects whose bytes leave the program or come from elsewhere.

use super::variable::{Variable, is_one_of};
use super::{NESTING, Scan, UseKind, skip_group};
use std::ops::Range;

/// The types of C and C++ whose objects are bytes.
pub(super) const BYTE_TYPES: [&[u8]; 12] = [
    b"Byte",
    b"Bytef",
    b"byte",
    b"char",
    b"guchar",
    b"gchar",
    b"int8_t",
    b"u8",
    b"u_char",
    b"uchar",
    b"uint8_t",
    b"u_int8_t",
];

/// The members of C++ containers of bytes that take some by address.
const APPENDS: [&[u8]; 5] = [b"append", b"assign", b"insert", b"string", b"string_view"];

impl Scan<'_> {
    /// Returns `true` if a call of a function passes the bytes of an object of the type to or from a file, a socket,
    /// memory that other programs see, or a buffer of bytes. `open` is the token of the call's parenthesis.
    pub(super) fn is_transfer(&self, name: &[u8], open: usize) -> bool {
        let end = self.group_end(open).saturating_sub(1);
        let inside = open + 1..end.max(open + 1);
        match name {
            // the size is a part of the number of an ioctl, and the kernel knows the members
            b"_IOR" | b"_IOW" | b"_IOWR" => inside.into_iter().any(|at| self.is_type(at)),
            b"mmap" | b"mmap64" => {
                let is_anonymous = |at| matches!(self.word(at), b"MAP_ANONYMOUS" | b"MAP_ANON");
                !inside.clone().any(is_anonymous) && self.is_sized(inside)
            }
            b"ftruncate" | b"ftruncate64" | b"shmget" => self.is_sized(inside),
            b"memcpy" | b"memmove" | b"copy_n" => {
                let arguments = self.arguments(inside.clone());
                let [first, second, ..] = arguments.as_slice() else { return false };
                let is_copy = |bytes: &Range<usize>, object: &Range<usize>| {
                    // other bytes in the file may have the name of an object
                    self.is_object(object.clone())
                        && self.names_bytes(bytes.clone())
                        && !self.is_object(bytes.clone())
                };
                self.is_sized(inside) && (is_copy(first, second) || is_copy(second, first))
            }
            _ if APPENDS.contains(&name) => {
                self.is_sized(inside.clone())
                    && inside.into_iter().any(|at| BYTE_TYPES.contains(&self.word(at)))
            }
            _ if transfers(name) => self.is_sized(inside),
            _ => self.wrappers.get(name).is_some_and(|passed| {
                let arguments = self.arguments(inside);
                let mut passed = passed.iter().filter_map(|at| arguments.get(*at));
                passed.any(|argument| self.is_sized(argument.clone()) || self.is_object(argument.clone()))
            }),
        }
    }

    /// Returns the arguments between the parentheses of a call.
    pub(super) fn arguments(&self, inside: Range<usize>) -> Vec<Range<usize>> {
        let mut arguments = Vec::new();
        let tokens = &self.tokens[..inside.end.min(self.tokens.len())];
        let (mut start, mut at) = (inside.start, inside.start);
        while at < inside.end {
            let is_group = [b'(', b'[', b'{'].iter().any(|open| self.punct(at, *open));
            if self.punct(at, b',') {
                arguments.push(start..at);
                start = at + 1;
            }
            at = if is_group { skip_group(tokens, at) } else { at + 1 };
        }
        arguments.push(start..inside.end);
        arguments
    }

    /// Returns `true` if an argument is an object of the type or its address, whatever it is cast to.
    fn is_object(&self, argument: Range<usize>) -> bool {
        let (mut at, mut end) = (argument.start, argument.end);
        for _ in 0..NESTING {
            let group = if self.punct(at, b'(') { self.group_end(at) } else { at };
            match () {
                // a cast to a pointer
                () if group > at && group < end && self.punct(group - 2, b'*') => at = group,
                () if group > at && group == end => (at, end) = (at + 1, end - 1),
                // reinterpret_cast<const char *>(&object)
                () if self.word(at).ends_with(b"_cast") && self.punct(at + 1, b'<') => {
                    let Some(open) = (at + 2..end).find(|at| self.punct(*at, b'(')) else { return false };
                    at = open;
                }
                () => return at < end && self.names_object(at..end),
            }
        }
        false
    }

    /// Returns `true` if an argument is in a buffer of bytes: by the type of a variable or a member, or by a cast.
    fn names_bytes(&self, argument: Range<usize>) -> bool {
        let mut at = argument.start;
        while at < argument.end {
            let word = self.word(at);
            let is_bytes = BYTE_TYPES.contains(&word) || is_one_of(self.byte_variables, word, at);
            // another member's name decides, if one follows
            let has_member = self.punct(at + 1, b'.') || self.punct(at + 1, b'-') && self.punct(at + 2, b'>');
            if !word.is_empty() && is_bytes && !has_member {
                return true;
            }
            at = if self.punct(at, b'[') { skip_group(self.tokens, at) } else { at + 1 };
        }
        false
    }

    /// Returns `true` if some tokens have the size of the type, or of an object of it.
    pub(super) fn is_sized(&self, mut inside: Range<usize>) -> bool {
        inside.any(|at| {
            let operand = at + 1..self.operand_end(at + 1);
            self.word(at) == b"sizeof" && self.names_object(operand.clone()) && !self.names_pointer(operand)
                || self.is_size(at)
        })
    }

    /// Returns `true` if an operand is a pointer itself, and not what it points to.
    fn names_pointer(&self, operand: Range<usize>) -> bool {
        let followed = operand.clone().filter(|at| self.punct(*at, b'*') || self.punct(*at, b'[')).count();
        let Some(last) = operand.rev().find(|at| !self.word(*at).is_empty()) else { return false };
        let is_it = |known: &Variable<'_>| known.name == self.word(last) && known.scope.contains(&last);
        self.variables.iter().any(|known| is_it(known) && followed < known.stars)
    }

    /// The use that a cast is which lays the type over bytes: over an array of bytes, or bytes that are constant.
    pub(super) fn overlay(&self, at: usize) -> Option<UseKind> {
        if !self.is_type(at) || !self.punct(at + 1, b'*') {
            return None;
        }
        let mut next = at + 2;
        if self.punct(next, b'>') && self.punct(next + 1, b'(') {
            next += 1;
        } else if !self.punct(next, b')') {
            return None;
        }
        while self.punct(next + 1, b'(') || self.punct(next + 1, b'&') {
            next += 1;
        }
        let name = next + 1;
        let is_member =
            self.punct(name + 1, b'.') || self.punct(name + 1, b'-') && self.punct(name + 2, b'>');
        let is_laid = |known: &Variable<'_>| {
            known.is_fixed && known.name == self.word(name) && known.scope.contains(&name)
        };
        let is_overlay = !is_member && self.byte_variables.iter().any(is_laid);
        is_overlay.then_some(UseKind::Transfer)
    }

    /// The use that an element of `readv` and `writev` is.
    pub(super) fn io_vector(&self, at: usize) -> Option<UseKind> {
        let inside = match self.word(at) {
            b"iovec" => {
                let mut open = at + 1;
                while !self.word(open).is_empty() || self.punct(open, b'=') || self.punct(open, b')') {
                    open += 1;
                }
                if self.punct(open, b'[') {
                    open = skip_group(self.tokens, open);
                    open += usize::from(self.punct(open, b'='));
                }
                if !self.punct(open, b'{') {
                    return None;
                }
                open..skip_group(self.tokens, open)
            }
            b"iov_len" if self.punct(at + 1, b'=') && !self.punct(at + 2, b'=') => {
                let ends = |at: &usize| [b';', b',', b'}'].iter().any(|end| self.punct(*at, *end));
                at + 2..(at + 2..self.tokens.len()).find(ends).unwrap_or(self.tokens.len())
            }
            _ => return None,
        };
        self.is_sized(inside).then_some(UseKind::Transfer)
    }
}

/// Returns `true` if a function, by its name, passes bytes to or from a file or a socket.
pub(super) fn transfers(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [
        b"write".as_slice(),
        b"read",
        b"send",
        b"recv",
        b"sendto",
        b"recvfrom",
        b"write_all",
        b"read_all",
        b"writen",
        b"readn",
        b"msgsnd",
        b"msgrcv",
    ];
    ends.iter().any(|end| name.ends_with(end)) && !name.ends_with(b"thread")
}

#[cfg(test)]
mod tests {
    use crate::UseKind;
    use crate::scan::tests::{assert_transfers, kinds};

    #[test]
    fn copies_to_and_from_bytes_are_transfers_and_those_between_objects_are_not() {
        assert_transfers(
            &[
                "char buf[64]; void f(rec_t *r) { memcpy(buf, r, sizeof *r); }",
                "void f(const uint8_t *from) { rec_t r, q; memcpy(&q, from + 4, sizeof q); }",
                "struct packet { unsigned char *data; };\nvoid f(struct packet *p, rec_t *r) { memcpy(&p->data[4], r, sizeof(*r)); }",
                "void f(void *p, rec_t *r) { memmove((char *)p + 8, r, sizeof(rec_t)); }",
                "void f(std::string &to, const rec &r) { to.append(reinterpret_cast<const char *>(&r), sizeof r); }",
            ],
            &[
                "struct { char *to; } o; void f(rec_t *to, rec_t *from) { memcpy(to, from, sizeof *to); }",
                "void f(char *key, rec_t *r) { memcpy(key + 8, &r, sizeof(r)); write(1, &r, sizeof r); }",
                "void f(char *key, rec_t **r) { memcpy(key, r, sizeof(*r)); }",
                "void f(void *slot, rec_t *r) { memcpy(slot, r, sizeof *r); }",
                "void f(char *name, rec_t *r) { memcpy(r->name, name, sizeof r->name); memcpy(name, r->name, 4); }",
                "void f(char *p) { rec_t *r = (rec_t *)realloc((char *)p, sizeof *r); }",
            ],
        );
    }

    #[test]
    fn objects_over_arrays_of_bytes_and_constant_bytes_are_transfers() {
        assert_transfers(
            &[
                "void f(const uint8_t *data) { const struct rec *r = (const struct rec *)data; }",
                "void f(int fd) { char buf[512]; rec_t *r = (rec_t *)buf; }",
                "void f(int fd) { unsigned char buf[512]; rec_t *r = (rec_t *)(&buf[4]); }",
                "int f(const char *data) { return reinterpret_cast<const rec *>(data)->a; }",
            ],
            &[
                "rec_t *f(char *arena) { return (rec_t *)arena; }",
                "rec_t *f(void *p) { return (rec_t *)p; }",
                "rec_t *f(struct other *o) { const char buf[2]; return (rec_t *)o->buf; }",
                "void g(const char *o) { } rec_t *f(struct other *o) { return (rec_t *)o; }",
            ],
        );
    }

    #[test]
    fn mapped_files_and_shared_memory_are_transfers_and_anonymous_memory_is_not() {
        assert_eq!(
            kinds("rec_t *f(int fd) { return mmap(0, sizeof(rec_t), PROT_READ, MAP_SHARED, fd, 0); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(kinds("int f(rec_t *r) { return shmget(1, sizeof *r, 0600); }"), [(UseKind::Transfer, 1)]);
        let anonymous =
            "rec_t *f() { return mmap(0, sizeof(rec_t), 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }";
        assert_eq!(kinds(anonymous), []);
    }
}
