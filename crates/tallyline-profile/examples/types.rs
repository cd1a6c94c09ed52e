//! Prints the type of each memory operand: `types FILE [FUNCTION]`, or how one came about: `types FILE -e ADDRESS`.
use std::fs::File;
use tallyline_layout::{Alone, print::type_text};
use tallyline_profile::code::Image;
use tallyline_profile::infer::{Debug, Outcome, Wanted, explain, field_path, infer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let file = File::open(&args[1])?;
    let image = Image::read(&file)?;
    if args.get(2).is_some_and(|arg| arg == "-e") {
        let address = u64::from_str_radix(args[3].trim_start_matches("0x"), 16)?;
        println!("{:#?}", explain(&image, Debug::File(&file), &Alone, address)?);
        return Ok(());
    }
    let start = std::time::Instant::now();
    let table = match std::env::var_os("BTF") {
        Some(btf) => tallyline_profile::infer::infer_by_btf(&image, &std::fs::read(btf)?, Wanted::All)?,
        None => infer(&image, Debug::File(&file), &Alone, Wanted::All)?,
    };
    let (mut typed, mut pseudo, mut untyped) = (0, 0, 0);
    for (address, outcome) in table.rows() {
        let name = table.function_at(*address).map_or("", |function| &function.name);
        match outcome {
            Outcome::Typed(_) => typed += 1,
            Outcome::Pseudo(_) => pseudo += 1,
            Outcome::Untyped(_) => untyped += 1,
        }
        if args.get(2).is_some_and(|wanted| wanted != name && wanted != "-a") || args.len() < 3 {
            continue;
        }
        let text = match outcome {
            Outcome::Typed(typed) => format!(
                "{} +{:#x} ({}) {:?}",
                String::from_utf8_lossy(&match table.types().qualified_name(typed.ty) {
                    n if n.is_empty() => type_text(table.types(), typed.ty).into_bytes().into(),
                    n => n,
                }),
                typed.offset,
                field_path(table.types(), typed.ty, typed.offset),
                typed.access
            ),
            Outcome::Pseudo(pseudo) => pseudo.name().to_string(),
            Outcome::Untyped(reason) => format!("? {reason}"),
        };
        println!("{address:#x} {name} {text}");
    }
    eprintln!(
        "typed {typed} pseudo {pseudo} untyped {untyped}: {:.1} % in {:?}",
        100.0 * typed as f64 / (typed + untyped).max(1) as f64,
        start.elapsed()
    );
    Ok(())
}
