//! Instructions that are found without decoding what they do.

use super::body::Body;
use super::image::{Image, Machine};
use super::instruction::Flow;
use super::x86;
use iced_x86::{Decoder, DecoderOptions};
use std::ops::Range;

/// The size of an instruction on aarch64, in bytes.
const AARCH64_SIZE: u64 = 4;

/// Returns the start and end addresses of the valid instructions in a function's code range, in order. It takes a
/// fifth of the time of [`Body::decode`], which also decodes what instructions do.
pub fn instructions(image: &Image, function: &Range<u64>) -> Vec<(u64, u64)> {
    let size = usize::try_from(function.end.saturating_sub(function.start)).unwrap_or(usize::MAX);
    let Some((_, bytes)) = image.bytes(function.start, size).filter(|(region, _)| region.code) else {
        return Vec::new();
    };
    if image.machine() == Machine::Other {
        return Vec::new();
    }
    let mut found = Vec::with_capacity(bytes.len() / 4);
    if image.machine() == Machine::Aarch64 {
        let starts =
            (0..bytes.len() as u64 / AARCH64_SIZE).map(|index| function.start + index * AARCH64_SIZE);
        found.extend(starts.map(|start| (start, start + AARCH64_SIZE)));
        return found;
    }
    let mut decoder = Decoder::with_ip(64, &bytes, function.start, DecoderOptions::NONE);
    let mut native = iced_x86::Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut native);
        if !native.is_invalid() {
            found.push((native.ip(), native.next_ip()));
        }
    }
    found
}

/// Returns `true` if a direct jump or branch within a function's code range leads to an address. Jump tables are
/// not followed.
pub fn is_branched_to(image: &Image, function: &Range<u64>, address: u64) -> bool {
    let leads = |flow: Flow| matches!(flow, Flow::Jump(Some(to)) | Flow::Branch(to) if to == address);
    if image.machine() != Machine::X86_64 {
        let body = Body::decode(image, std::slice::from_ref(function), function.start);
        return body.instructions().iter().any(|instruction| leads(instruction.flow()));
    }
    let size = usize::try_from(function.end.saturating_sub(function.start)).unwrap_or(usize::MAX);
    let Some((_, bytes)) = image.bytes(function.start, size).filter(|(region, _)| region.code) else {
        return false;
    };
    let decoder = Decoder::with_ip(64, &bytes, function.start, DecoderOptions::NONE);
    decoder.into_iter().any(|native| leads(x86::flow(&native)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_whole_functions_have() {
        // this very program
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
        let image = Image::parse(&bytes).expect("an ELF file");
        let (mut calls, mut branches) = (0, 0);
        for function in image.functions().iter().filter(|function| function.size() > 0).take(300) {
            let range = function.address()..function.address() + function.size();
            let body = Body::decode(&image, std::slice::from_ref(&range), range.start);
            let found = super::instructions(&image, &range);
            assert!(found.is_sorted() && found.len() <= body.instructions().len());
            for instruction in body.instructions() {
                if matches!(instruction.flow(), Flow::Call(_)) {
                    let of_call = (instruction.address(), instruction.end());
                    assert!(found.binary_search(&of_call).is_ok());
                    calls += 1;
                }
            }
            let leads = |to: u64| {
                let is_it = |flow: Flow| matches!(flow, Flow::Jump(Some(at)) | Flow::Branch(at) if at == to);
                body.instructions().iter().any(|instruction| is_it(instruction.flow()))
            };
            for instruction in body.instructions().iter().take(12) {
                let is_led_to = leads(instruction.address());
                assert_eq!(is_branched_to(&image, &range, instruction.address()), is_led_to);
                branches += usize::from(is_led_to);
            }
        }
        assert!(calls > 100 && branches > 10, "{calls} {branches}");
    }
}
