//! The reader of declarations: any text, any order; the same order changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tallyline_source::{
    Change, Language, Refusal, SearchedType, defined_symbols, edit, foreign_uses, holders, size_names, typedefs,
    unified_diff, uses, wrapper_calls, wrappers,
};

fuzz_target!(|data: &[u8]| {
    let [language, line, text @ ..] = data else { return };
    let language = match language % 3 {
        0 => Language::C,
        1 => Language::Cpp,
        _ => Language::Rust,
    };
    let change = |members: &[String], order: Vec<usize>| {
        let members = members.iter().map(|name| (if name == "an unnamed member" { "" } else { name }, 0));
        Change::new(language, u32::from(*line), "s").with_order(members, order)
    };
    // the text itself says which members it has
    let mut members: Vec<String> = Vec::new();
    for _ in 0..24 {
        let count = members.len();
        match edit(text, &change(&members, (0..count).collect())) {
            Err(Refusal::Members(_, found)) => members.push(found),
            Err(_) => break,
            Ok(same) => {
                assert_eq!(same.applied_to(text), text);
                if let Ok(turned) = edit(text, &change(&members, (0..count).rev().collect())) {
                    let turned = turned.applied_to(text);
                    unified_diff("a", text, &turned);
                }
                break;
            }
        }
    }
    let names = vec![vec![b"s".to_vec()]];
    if members.len() < 2 {
        members = ["a", "b", "c"].map(String::from).to_vec();
    }
    let turned = change(&members, (0..members.len()).rev().collect());
    let mut searched = SearchedType::new(names[0].clone(), &turned);
    let of_text = holders(text, language).into_iter().map(|(_, _, name)| name).collect();
    searched.set_holders(of_text, vec![b"m".to_vec()]);
    for (_, size) in size_names(text, language, std::slice::from_ref(&searched)) {
        searched.add_size(size);
    }
    let wrappers = wrappers(&wrapper_calls(text, language));
    uses(text, language, &[searched], &wrappers);
    typedefs(text, language, &names[0]);
    foreign_uses(text, &names);
    defined_symbols(text);
});
