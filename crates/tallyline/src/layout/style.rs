//! Options that say how types are printed.

use clap::Args;
use tallyline_layout::print::pahole::Style;

#[derive(Debug, Args)]
pub(super) struct StyleArgs {
    /// Expand the types of members
    #[arg(short = 'E', long, alias = "expand_types")]
    expand_types: bool,

    /// Expand the types that members point to
    #[arg(short = 'p', long, alias = "expand_pointers")]
    expand_pointers: bool,

    /// Print numbers in hexadecimal
    #[arg(long)]
    hex: bool,

    /// Print only declarations, without offsets, comments and sums
    #[arg(short, long)]
    quiet: bool,

    /// Print multi-dimensional arrays as one dimension
    #[arg(long, alias = "flat_arrays")]
    flat_arrays: bool,

    /// Print offsets relative to the struct that declares the member
    #[arg(short, long, alias = "rel_offset")]
    relative_offsets: bool,

    /// Print only members that occupy space
    #[arg(short = 'M', long, alias = "show_only_data_members")]
    only_data: bool,

    /// At the end, print the first of the largest members that fit into a machine word
    #[arg(short = 'l', long, alias = "show_first_biggest_size_base_type_member")]
    first_biggest: bool,

    /// Print classes as `struct`
    #[arg(long, alias = "classes_as_structs")]
    classes_as_structs: bool,

    /// Omit alignment attributes
    #[arg(long, alias = "suppress_aligned_attribute")]
    suppress_aligned: bool,

    /// Omit packed attributes
    #[arg(long, alias = "suppress_packed")]
    suppress_packed: bool,

    /// Omit the bitfields that stand for padding
    #[arg(long, alias = "suppress_force_paddings")]
    suppress_force_padding: bool,
}

impl StyleArgs {
    /// Returns the style of printing.
    pub(super) fn style(&self, cacheline: u64) -> Style {
        let style = Style {
            cacheline,
            expand_types: self.expand_types,
            expand_pointers: self.expand_pointers,
            hex: self.hex,
            flat_arrays: self.flat_arrays,
            relative_offsets: self.relative_offsets,
            first_biggest: self.first_biggest,
            only_data: self.only_data,
            classes_as_structs: self.classes_as_structs,
            aligned: !self.suppress_aligned,
            packed: !self.suppress_packed,
            force_padding: !self.suppress_force_padding,
            ..Style::default()
        };
        if self.quiet { style.quiet() } else { style }
    }
}
