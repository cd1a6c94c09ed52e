//! Instructions as text, for people.

use super::image::{Image, Machine};
use super::instruction::Instruction;
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

impl Image {
    /// Disassembles an instruction into a line of assembly; one that cannot be decoded is shown as bytes.
    pub fn text(&self, instruction: &Instruction) -> String {
        let length = usize::from(instruction.length);
        let bytes = self.bytes(instruction.address, length).map(|(_, bytes)| bytes);
        let Some(bytes) = bytes.filter(|bytes| bytes.len() == length) else {
            return String::new();
        };
        if self.machine() != Machine::X86_64 {
            return bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        }
        let mut decoder = Decoder::with_ip(64, &bytes, instruction.address, DecoderOptions::NONE);
        let mut text = String::new();
        GasFormatter::new().format(&decoder.decode(), &mut text);
        text
    }
}
