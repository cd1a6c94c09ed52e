//! Options of the printed format.

/// The options of pahole's text format, such as hexadecimal offsets or no comments.
#[derive(Clone, Debug)]
pub struct Style {
    /// The size of a cache line in bytes.
    pub cacheline: u64,
    /// Unfold the types of members, not just anonymous ones.
    pub expand_types: bool,
    /// Unfold what members point to, but nothing inside of itself. Then of members that are no pointers only
    /// anonymous types are unfolded.
    pub expand_pointers: bool,
    /// Offsets, sizes and values in hexadecimal.
    pub hex: bool,
    /// Several dimensions as one.
    pub flat_arrays: bool,
    /// Offsets relative to the struct that a member is declared in.
    pub relative_offsets: bool,
    /// The sums at the end.
    pub stats: bool,
    /// Notes on holes, bitfields and cache lines.
    pub comments: bool,
    /// Offset and size behind each member.
    pub offsets: bool,
    /// Alignments that were asked for, or are inferred.
    pub aligned: bool,
    /// The `packed` attributes of structs.
    pub packed: bool,
    /// The pseudo-members that stand for padding which nothing explains.
    pub force_padding: bool,
    /// `struct` also for classes.
    pub classes_as_structs: bool,
    /// At the end, the first member of the largest size that a machine word can hold.
    pub first_biggest: bool,
    /// Of a header that compiles, also the typedefs of atomic types that the file has as base types.
    pub atomic_typedefs: bool,
    /// Only the members that take space: no methods, no types.
    pub only_data: bool,
    /// The most bytes that one type may print.
    pub budget: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            cacheline: 64,
            expand_types: false,
            expand_pointers: false,
            hex: false,
            flat_arrays: false,
            relative_offsets: false,
            stats: true,
            comments: true,
            offsets: true,
            aligned: true,
            packed: true,
            force_padding: true,
            classes_as_structs: false,
            first_biggest: false,
            atomic_typedefs: true,
            only_data: false,
            budget: 64 << 20,
        }
    }
}

impl Style {
    /// Returns the style with pahole's comments on offsets, sizes and holes turned off.
    pub fn quiet(self) -> Style {
        Style { stats: false, comments: false, offsets: false, ..self }
    }
}
