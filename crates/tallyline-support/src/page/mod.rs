//! Pages that need no network, no script and no other file: what all of them share.

use anyhow::{Context, Result};

/// The style sheet of all pages.
const BASE: &str = include_str!("base.css");

const HEAD: &str = include_str!("head.html");

/// Returns the beginning of an HTML page that shows the tool's results, up to its body. `title` is markup that is
/// inserted as it is; `style` is CSS added to the common style sheet.
pub fn head(title: &str, style: &str) -> Result<String> {
    let fields = [
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("title", title.to_string()),
        ("style", [BASE, style].concat()),
    ];
    fill(HEAD, &fields)
}

/// Replaces each `{{name}}` in an HTML template by the value of that name in `fields`. Values are not searched for
/// further fields. Fails if a field has no value.
pub fn fill(frame: &str, fields: &[(&str, String)]) -> Result<String> {
    let mut page = String::with_capacity(frame.len() * 8);
    let mut rest = frame;
    while let Some((before, from)) = rest.split_once("{{") {
        let (name, after) = from.split_once("}}").context("a field of the page has no end")?;
        let value =
            fields.iter().find(|field| field.0 == name).with_context(|| format!("no value for {name}"))?;
        page.push_str(before);
        page.push_str(&value.1);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_filled_and_what_is_in_it_stays_as_it_is() {
        let fields = [("a", "{{b}}".to_owned()), ("b", "x".to_owned())];
        assert_eq!(fill("1 {{a}} 2 {{b}} 3", &fields).expect("filled"), "1 {{b}} 2 x 3");
        assert!(fill("{{c}}", &fields).is_err());
        assert!(fill("{{a", &fields).is_err());
    }
}
