//! `-C 'type(sizeof=member,…)'` says how raw data is to be read. Without `--prettify` it changes
//! nothing of what is shown, but what it names has to be there.

use crate::layout::select::split;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;

/// A type with arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prototype {
    name: String,
    /// `sizeof` and `type`, with the members that they name.
    members: Vec<(&'static str, String)>,
}

/// Takes the arguments out of a list of types: the list without them, and the types that had some.
pub(super) fn take(list: &str) -> Result<(String, Vec<Prototype>), String> {
    let (mut names, mut prototypes) = (Vec::new(), Vec::new());
    for entry in split(list) {
        // parentheses of C++ stand in a template's arguments, of Rust at the start
        let call = entry.strip_suffix(')').and_then(|entry| entry.split_once('('));
        let Some((name, arguments)) = call.filter(|(name, _)| !name.is_empty() && !name.contains('<')) else {
            names.push(entry);
            continue;
        };
        names.push(name);
        if !arguments.trim().is_empty() {
            let members = members(entry, arguments)?;
            prototypes.push(Prototype { name: name.to_string(), members });
        }
    }
    Ok((names.join(","), prototypes))
}

fn members(entry: &str, arguments: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut members = Vec::new();
    for argument in arguments.split(',').map(str::trim) {
        match (argument, argument.split_once('=')) {
            ("sizeof", _) => members.push(("sizeof", "size".to_string())),
            ("type", _) => members.push(("type", "type".to_string())),
            (_, None) => return Err(format!("invalid, missing '=' in '{argument}'")),
            (_, Some(("sizeof", member))) => members.push(("sizeof", member.trim().to_string())),
            (_, Some(("type", member))) if !member.starts_with('=') => {
                members.push(("type", member.trim().to_string()));
            }
            // which of the data, and where
            (_, Some(("type_enum" | "filter" | "range", _))) => {}
            (_, Some((_, value))) if value.starts_with('=') => {}
            (_, Some((name, _))) => {
                return Err(format!(
                    "invalid arg '{name}' in '{entry}' (known args: sizeof=member, type=member, type_enum=enum)"
                ));
            }
        }
    }
    Ok(members)
}

/// Returns the prototypes' types and members that do not exist, in pahole's words.
pub(super) fn check(prototypes: &[Prototype], types: &Types) -> Result<(), String> {
    for Prototype { name, members } in prototypes {
        let Some(id) = lookup::find(types, name.as_bytes()) else { continue };
        let Some((_, record)) = types.as_record(id).filter(|(_, record)| record.is_struct()) else {
            return Err("attributes are only supported with 'class' and 'struct' types".into());
        };
        for (what, member) in members {
            let known = |name: &[u8]| name == member.as_bytes();
            if !types.members(record).iter().any(|member| known(types.name(member.name))) {
                return Err(format!("the {what} member '{member}' wasn't found in the '{name}' type"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prototype(name: &str, members: &[(&'static str, &str)]) -> Prototype {
        let members = members.iter().map(|(what, member)| (*what, member.to_string())).collect();
        Prototype { name: name.into(), members }
    }

    #[test]
    fn arguments_are_taken_out_of_the_list() {
        let (list, prototypes) =
            take("a,b(sizeof=len,type=kind,type_enum=kinds),c(sizeof,type==3)").expect("understood");
        assert_eq!(list, "a,b,c");
        assert_eq!(
            prototypes,
            [prototype("b", &[("sizeof", "len"), ("type", "kind")]), prototype("c", &[("sizeof", "size")])]
        );
        assert_eq!(take("a()").expect("understood"), ("a".into(), vec![]));
    }

    #[test]
    fn names_with_parentheses_of_their_own_stay() {
        for name in ["f<int (*)(int)>", "(i32, u8)", "file:///tmp/list"] {
            assert_eq!(take(name).expect("understood"), (name.to_string(), vec![]));
        }
    }

    #[test]
    fn unknown_arguments_are_named() {
        assert!(take("a(bogus=1)").expect_err("unknown").starts_with("invalid arg 'bogus' in 'a(bogus=1)'"));
        assert_eq!(take("a(bogus)").expect_err("unknown"), "invalid, missing '=' in 'bogus'");
    }
}
