//! The owner of an address that several units of debug information claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::NoCompanions;
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Outcome, Wanted, field_path, infer};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("units-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs a compiler in a folder; false, with a word about it, where there is none.
fn runs(compiler: &str, arguments: &[&str], folder: &Path) -> bool {
    match Command::new(compiler).args(arguments).current_dir(folder).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => panic!("{compiler} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            false
        }
    }
}

/// Returns the fields that the instructions of a function touch. Each is asked for by its address alone, so
/// the unit has to be found by it.
fn fields(program: &Path, symbol: &str) -> Vec<String> {
    let bytes = fs::read(program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let whole = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let function = whole.functions().iter().find(|function| function.name() == symbol);
    let range = function.unwrap_or_else(|| panic!("no {symbol}")).ranges()[0].clone();
    let touching = whole.rows().iter().filter(|(address, _)| range.contains(address));
    let mut fields = Vec::new();
    for (address, _) in touching {
        let table =
            infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::At(&[*address])).expect("a table");
        match table.outcome(*address) {
            Some(Outcome::Typed(typed)) => fields.push(field_path(table.types(), &typed)),
            Some(Outcome::Untyped(reason)) => fields.push(format!("({reason})")),
            Some(Outcome::Pseudo(_)) => {}
            None => fields.push(format!("(nothing at {address:#x})")),
        }
    }
    fields
}

#[test]
fn an_address_is_of_the_unit_with_a_function_there_where_another_unit_s_range_reaches_into_it() {
    let folder = folder("wide");
    let own = "struct own { long first; long second[8]; };\n\
        long sum(struct own *own) { long all = 0; for (int i = 0; i < 8; i++) all += own->second[i] * (i + own->first); return all; }\n";
    let other = "struct other { int one; };\nint main(int count, char **words) { return count > 1 && words[1][0] == 'x'; }\n";
    fs::write(folder.join("own.c"), own).expect("written");
    fs::write(folder.join("other.c"), other).expect("written");
    if !runs("gcc", &["-O1", "-g", "-S", "-fno-reorder-functions", "other.c"], &folder) {
        return;
    }
    // a unit that says only where its code begins and ends, and that begins too early
    let text = fs::read_to_string(folder.join("other.s")).expect("assembly");
    let wide = text
        .replace("\t.quad\t.Ltext0\n", "\t.quad\t.Ltext0-32\n")
        .replace(".Letext0-.Ltext0", ".Letext0-.Ltext0+32");
    assert_ne!(wide, text);
    // main in .text, as sum is
    fs::write(folder.join("other.s"), wide.replace(".section\t.text.startup,\"ax\",@progbits", ".text"))
        .expect("written");
    assert!(runs("gcc", &["-O1", "-g", "own.c", "other.s", "-o", "program"], &folder));
    let found = fields(&folder.join("program"), "sum");
    assert!(found.iter().any(|field| field == "first"), "{found:?}");
    assert!(found.iter().all(|field| ["first", "second[]"].contains(&field.as_str())), "{found:?}");
}

#[test]
fn a_function_that_several_units_have_is_found_whichever_the_linker_keeps() {
    let folder = folder("comdat");
    let shared = "struct item { long id; int flags; };\n\
        template <typename T> __attribute__((noinline)) long shared_sum(T *items, int count) {\n\
        long all = 0; for (int i = 0; i < count; i++) all += items[i].id + items[i].flags; return all; }\n";
    fs::write(folder.join("shared.h"), shared).expect("written");
    fs::write(
        folder.join("a.cc"),
        "#include \"shared.h\"\nlong a(item *items) { return shared_sum(items, 3); }\n",
    )
    .expect("written");
    let main = "#include \"shared.h\"\nlong a(item *);\n\
        int main(int count, char **) { item items[4] = {}; return a(items) + shared_sum(items, count); }\n";
    fs::write(folder.join("b.cc"), main).expect("written");
    let mut answers = Vec::new();
    for order in [["a.cc", "b.cc"], ["b.cc", "a.cc"]] {
        for extra in [&[][..], &["-flto"], &["-ffunction-sections", "-Wl,--gc-sections"], &["-fuse-ld=lld"]] {
            if extra == ["-fuse-ld=lld"] && Command::new("ld.lld").arg("--version").output().is_err() {
                continue;
            }
            let mut words = vec!["-O2", "-g", "-fno-ipa-icf", "-o", "program"];
            words.extend(order);
            words.extend(extra);
            if !runs("g++", &words, &folder) {
                return;
            }
            // how the compiler has arranged the loop differs, which members it touches does not
            let mut found = fields(&folder.join("program"), "shared_sum<item>");
            found.sort();
            found.dedup();
            answers.push((words, found));
        }
    }
    for (words, found) in answers {
        assert_eq!(found, ["flags", "id"], "{words:?}");
    }
}
