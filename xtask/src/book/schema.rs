//! JSON documents held against the schemas that the book publishes.
//!
//! Of JSON Schema (2020-12) what these schemas use; a keyword that is not known here is an error, as it would be
//! one that holds nothing. In one thing the check is stricter: a field that a schema does not have is a problem. To
//! readers the schemas allow further fields, which a later version may add.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// Keywords that describe and do not restrict.
const NOTES: [&str; 6] = ["$schema", "$id", "$defs", "title", "description", "examples"];

/// The rule for fields that a schema does not have.
static CLOSED: Value = Value::Bool(false);

/// Deep enough for any schema that ends.
const DEPTH: usize = 64;

/// Returns what a document has against a schema, each with its place.
pub(super) fn problems(schema: &Value, document: &Value) -> Result<Vec<String>> {
    let mut check = Check { root: schema, problems: Vec::new() };
    check.value(schema, document, "$", 0)?;
    Ok(check.problems)
}

struct Check<'a> {
    root: &'a Value,
    problems: Vec<String>,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, place: &str, depth: usize) -> Result<()> {
        anyhow::ensure!(depth < DEPTH, "{place}: the schema refers to itself without an end");
        let Value::Object(schema) = schema else { bail!("{place}: the schema is no object") };
        if let (true, false, Value::Object(fields)) =
            (schema.contains_key("properties"), schema.contains_key("additionalProperties"), value)
        {
            self.others(schema, &CLOSED, fields, place, depth)?;
        }
        for (keyword, rule) in schema {
            match (keyword.as_str(), value) {
                ("$ref", _) => self.value(self.definition(rule)?, value, place, depth + 1)?,
                ("anyOf", _) => self.any_of(rule, value, place, depth)?,
                ("type", _) => self.has_type(rule, value, place)?,
                ("const", _) if value != rule => self.add(place, &format!("{value} is not {rule}")),
                ("enum", _) if !list(rule)?.contains(value) => {
                    self.add(place, &format!("{value} is none of {rule}"));
                }
                ("required", Value::Object(fields)) => {
                    for name in list(rule)? {
                        let name = name.as_str().context("a required name that is no text")?;
                        if !fields.contains_key(name) {
                            self.add(place, &format!("`{name}` is missing"));
                        }
                    }
                }
                ("properties", Value::Object(fields)) => {
                    for (name, rule) in rule.as_object().context("properties that are no object")? {
                        if let Some(field) = fields.get(name) {
                            self.value(rule, field, &format!("{place}.{name}"), depth + 1)?;
                        }
                    }
                }
                ("additionalProperties", Value::Object(fields)) => {
                    self.others(schema, rule, fields, place, depth)?;
                }
                ("items", Value::Array(items)) => {
                    for (number, item) in items.iter().enumerate() {
                        self.value(rule, item, &format!("{place}[{number}]"), depth + 1)?;
                    }
                }
                ("const" | "enum" | "required" | "properties" | "additionalProperties" | "items", _) => {}
                (note, _) if NOTES.contains(&note) => {}
                _ => bail!("{place}: the schema's keyword `{keyword}` is not known here"),
            }
        }
        Ok(())
    }

    fn definition(&self, reference: &Value) -> Result<&'a Value> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        pointer
            .and_then(|pointer| self.root.pointer(pointer))
            .with_context(|| format!("{reference}: the schema has no such definition"))
    }

    fn any_of(&mut self, rule: &'a Value, value: &Value, place: &str, depth: usize) -> Result<()> {
        let mut fewest: Option<Vec<String>> = None;
        for choice in list(rule)? {
            let mut check = Check { root: self.root, problems: Vec::new() };
            check.value(choice, value, place, depth + 1)?;
            if fewest.as_ref().is_none_or(|fewest| check.problems.len() < fewest.len()) {
                fewest = Some(check.problems);
            }
        }
        self.problems.append(&mut fewest.unwrap_or_default());
        Ok(())
    }

    fn has_type(&mut self, rule: &Value, value: &Value, place: &str) -> Result<()> {
        let names = match rule {
            Value::Array(names) => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        let mut fits = false;
        for name in names {
            fits |= match name.as_str().unwrap_or_default() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                "number" => value.is_number(),
                "integer" => value.is_i64() || value.is_u64(),
                _ => bail!("{place}: the schema's type {name} is not known here"),
            };
        }
        if !fits {
            self.add(place, &format!("{value} is no {rule}"));
        }
        Ok(())
    }

    fn others(
        &mut self,
        schema: &'a Map<String, Value>,
        rule: &'a Value,
        fields: &Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Result<()> {
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields {
            if known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            match rule {
                Value::Bool(true) => {}
                Value::Bool(false) => self.add(place, &format!("`{name}` is not in the schema")),
                rule => self.value(rule, field, &format!("{place}.{name}"), depth + 1)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, place: &str, what: &str) {
        self.problems.push(format!("{place}: {what}"));
    }
}

fn list(rule: &Value) -> Result<&Vec<Value>> {
    rule.as_array().with_context(|| format!("{rule}: the schema has no list there"))
}

#[cfg(test)]
mod tests {
    use super::problems;
    use serde_json::{Value, json};

    fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["schema", "types"],
            "properties": {
                "schema": {"const": 1},
                "types": {"type": "array", "items": {"$ref": "#/$defs/type"}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            "$defs": {"type": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"enum": ["struct", "union"]},
                    "inner": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/type"}]},
                },
            }},
        })
    }

    #[test]
    fn a_document_that_keeps_to_it_has_no_problem() {
        let document = json!({"schema": 1, "counts": {"a": 2}, "types": [
            {"name": "a", "kind": "union", "inner": {"name": "b", "inner": null}},
        ]});
        assert_eq!(problems(&schema(), &document).expect("known"), [""; 0]);
    }

    #[test]
    fn each_problem_has_its_place() {
        let document = json!({"schema": 2, "counts": {"a": 1.5}, "types": [
            {"kind": "class", "inner": 3, "size": 4},
        ], "more": 1});
        let mut found = problems(&schema(), &document).expect("known");
        found.sort();
        let expected = [
            "$.counts.a: 1.5 is no \"integer\"",
            "$.schema: 2 is not 1",
            "$.types[0].inner: 3 is no \"null\"",
            "$.types[0].kind: \"class\" is none of [\"struct\",\"union\"]",
            "$.types[0]: `name` is missing",
            "$.types[0]: `size` is not in the schema",
            "$: `more` is not in the schema",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn schemas_that_would_hold_nothing_are_errors() {
        for (schema, expected) in [
            (json!({"requires": []}), "$: the schema's keyword `requires` is not known here"),
            (json!({"type": "text"}), "$: the schema's type \"text\" is not known here"),
            (json!({"$ref": "#/$defs/x"}), "\"#/$defs/x\": the schema has no such definition"),
            (json!({"$ref": "#"}), "$: the schema refers to itself without an end"),
        ] {
            assert_eq!(problems(&schema, &json!({})).expect_err("an error").to_string(), expected);
        }
    }
}
