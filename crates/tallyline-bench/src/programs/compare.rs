//! Shares of fields by samples and by the model, and how well their orders agree.

use anyhow::{Result, anyhow};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The share above which a field counts, in percent.
pub(super) const LEAST: f64 = 2.0;

/// The rank correlation that is wanted.
pub(super) const CORRELATION: f64 = 0.8;

/// The standard errors of a difference by which two shares may differ and be tied.
pub(super) const TIED: f64 = 2.0;

/// The weight of each field, and of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    fields: BTreeMap<String, f64>,
    all: f64,
}

/// A field with its shares in percent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) sampled: f64,
    pub(super) modelled: f64,
}

/// The comparison of one program's fields: their shares by samples and by the model.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) program: String,
    pub(super) samples: u64,
    /// The shares of all fields of types in the samples and in the model's cost, in percent.
    pub(super) typed: (f64, f64),
    /// The fields with a share above [`LEAST`] by samples or by the model, the most sampled first.
    pub(super) fields: Vec<Field>,
    /// Spearman's rank correlation over the fields whose sampled share is above [`LEAST`].
    pub(super) correlation: Option<f64>,
    /// Spearman's rank correlation over all of `fields`.
    pub(super) correlation_either: Option<f64>,
}

impl Shares {
    /// Adds the rows of `tallyline report -s type,typeoff --json`.
    pub(super) fn add_report(&mut self, report: &Value) -> Result<()> {
        for row in rows(report, "rows")? {
            let keys = &row["keys"];
            let field = text(&keys["typeoff"])?;
            self.add(text(&keys["type"])?, field, number(&row["samples"])?);
        }
        Ok(())
    }

    /// Adds the fields of `tallyline replay --cost --json`.
    pub(super) fn add_model(&mut self, model: &Value) -> Result<()> {
        for row in rows(model, "fields")? {
            let (ty, field) = (text(&row["type"])?, text(&row["field"])?);
            self.add(ty, &format!("{ty} {field}"), number(&row["cycles"])?);
        }
        Ok(())
    }

    /// Adds to a field; in brackets are reasons why there is none.
    fn add(&mut self, ty: &str, field: &str, weight: f64) {
        self.all += weight;
        if !ty.starts_with('(') {
            *self.fields.entry(field.to_owned()).or_default() += weight;
        }
    }

    /// Returns the weight of all.
    pub(super) fn total(&self) -> f64 {
        self.all
    }

    fn percent(&self, field: &str) -> f64 {
        100.0 * self.fields.get(field).copied().unwrap_or(0.0) / self.all.max(1.0)
    }

    fn typed(&self) -> f64 {
        100.0 * self.fields.values().sum::<f64>() / self.all.max(1.0)
    }
}

impl Comparison {
    pub(super) fn new(program: &str, sampled: Shares, modelled: Shares) -> Comparison {
        let names: BTreeSet<&String> = sampled.fields.keys().chain(modelled.fields.keys()).collect();
        let field = |name: &String| Field {
            name: name.clone(),
            sampled: sampled.percent(name),
            modelled: modelled.percent(name),
        };
        let is_large = |field: &Field| field.sampled > LEAST || field.modelled > LEAST;
        let mut fields: Vec<Field> = names.into_iter().map(field).filter(is_large).collect();
        fields.sort_by(|a, b| b.sampled.total_cmp(&a.sampled).then(b.modelled.total_cmp(&a.modelled)));
        let pair = |field: &Field| (field.sampled, field.modelled);
        let pairs: Vec<(f64, f64)> = fields.iter().map(pair).collect();
        let sampled_pairs: Vec<(f64, f64)> = pairs.iter().copied().filter(|pair| pair.0 > LEAST).collect();
        Comparison {
            program: program.to_owned(),
            samples: sampled.all as u64,
            typed: (sampled.typed(), modelled.typed()),
            correlation: spearman(&sampled_pairs, sampled.all),
            correlation_either: spearman(&pairs, sampled.all),
            fields,
        }
    }

    /// Returns the number of fields whose sampled share is above [`LEAST`].
    pub(super) fn sampled_fields(&self) -> usize {
        self.fields.iter().filter(|field| field.sampled > LEAST).count()
    }

    /// Returns the field with the largest share by samples, to compare with the one by the model.
    pub(super) fn top_sampled(&self) -> Option<&Field> {
        self.fields.first()
    }

    /// Returns the field with the largest share by the model.
    pub(super) fn top_modelled(&self) -> Option<&Field> {
        self.fields.iter().max_by(|a, b| a.modelled.total_cmp(&b.modelled))
    }

    /// Returns true if samples and model name the same field first.
    pub(super) fn agrees(&self) -> bool {
        self.top_sampled().is_some_and(|field| Some(field) == self.top_modelled())
    }
}

/// Returns Spearman's rank correlation of shares in percent, of which so many samples cannot tell those apart that are
/// tied; `None` with fewer than two pairs, or where one side has a single rank.
fn spearman(pairs: &[(f64, f64)], samples: f64) -> Option<f64> {
    if pairs.len() < 2 {
        return None;
    }
    let one = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(), samples);
    let other = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>(), samples);
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let (first, second) = (product(&one, &one), product(&other, &other));
    (first > 0.0 && second > 0.0).then(|| product(&one, &other) / (first * second).sqrt())
}

/// Returns the ranks of shares in percent; of those that are tied each counts as half above the other. They add up as
/// ranks without ties do.
fn ranks(shares: &[f64], samples: f64) -> Vec<f64> {
    let rank = |own: &f64| {
        let others = shares.iter().map(|other| match is_tied(*own, *other, samples) {
            true => 0.5,
            false => f64::from(other < own),
        });
        // its own half is no other's
        others.sum::<f64>() - 0.5
    };
    shares.iter().map(rank).collect()
}

/// Returns `true` if two shares, in percent of `samples` samples, differ by no more than [`TIED`] standard errors of
/// their difference.
fn is_tied(one: f64, other: f64, samples: f64) -> bool {
    let (one, other) = (one / 100.0, other / 100.0);
    let variance = (one + other - (one - other).powi(2)).max(0.0) / samples.max(1.0);
    (one - other).abs() <= TIED * variance.sqrt()
}

fn rows<'v>(document: &'v Value, name: &str) -> Result<&'v Vec<Value>> {
    document[name].as_array().ok_or_else(|| anyhow!("no `{name}` in the JSON"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| anyhow!("{value} is no text"))
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| anyhow!("{value} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Samples that tell any two shares of the tests apart.
    const MANY: f64 = 1e6;

    fn shares(fields: &[(&str, f64)]) -> Shares {
        let mut shares = Shares::default();
        fields.iter().for_each(|(name, weight)| shares.add("struct s", name, *weight));
        shares
    }

    #[test]
    fn orders_that_agree_correlate_and_reversed_ones_do_not() {
        let same = [(30.0, 50.0), (20.0, 40.0), (10.0, 5.0)];
        assert_eq!(spearman(&same, MANY), Some(1.0));
        let reversed = [(30.0, 5.0), (20.0, 40.0), (10.0, 50.0)];
        assert_eq!(spearman(&reversed, MANY), Some(-1.0));
        assert_eq!((spearman(&same[..2], MANY), spearman(&same[..1], MANY)), (Some(1.0), None));
        assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)], MANY), None);
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0], MANY), [1.5, 0.0, 1.5, 3.0]);
    }

    #[test]
    fn shares_that_the_samples_cannot_tell_apart_are_tied() {
        // the standard error of 2.4 less 2.0 is 0.21 of 10 000 samples, and 0.07 of 100 000
        assert!(is_tied(2.4, 2.0, 10_000.0) && !is_tied(2.4, 2.0, 100_000.0));
        assert!(!is_tied(3.0, 2.0, 10_000.0) && is_tied(3.0, 3.0, MANY));
        assert_eq!(ranks(&[9.0, 2.4, 2.0], 10_000.0), [2.0, 0.5, 0.5]);
        assert_eq!(ranks(&[9.0, 2.4, 2.0], 100_000.0), [2.0, 1.0, 0.0]);
        // being tied does not carry over: the middle one is tied with both
        assert_eq!(ranks(&[2.6, 2.3, 2.0], 10_000.0), [1.5, 1.0, 0.5]);
        // a reversed pair counts as soon as the samples tell it apart
        let reversed = [(9.0, 9.0), (2.4, 2.0), (2.0, 2.4)];
        assert_eq!(spearman(&reversed, 10_000.0), Some(1.0));
        assert_eq!(spearman(&reversed, 100_000.0), Some(0.5));
    }

    #[test]
    fn fields_that_only_one_side_has_count_with_nothing_on_the_other() {
        let comparison = Comparison::new(
            "program",
            shares(&[("a", 6000.0), ("b", 3900.0), ("c", 100.0)]),
            shares(&[("a", 50.0), ("d", 49.0), ("c", 1.0)]),
        );
        let names: Vec<_> = comparison.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
        assert_eq!(comparison.fields[1].modelled, 0.0);
        assert!(comparison.agrees());
        assert_eq!((comparison.sampled_fields(), comparison.correlation), (2, Some(1.0)));
        assert!(comparison.correlation_either.is_some_and(|correlation| correlation < CORRELATION));
    }

    #[test]
    fn what_is_no_field_is_part_of_the_whole() {
        let mut sampled = Shares::default();
        let report = json!({"rows": [
            {"keys": {"type": "struct s", "typeoff": "struct s +0 (a)"}, "samples": 30},
            {"keys": {"type": "(no memory)", "typeoff": "(no memory)"}, "samples": 70},
        ]});
        sampled.add_report(&report).expect("rows");
        let mut modelled = Shares::default();
        let model = json!({"fields": [
            {"type": "struct s", "field": "+0 (a)", "cycles": 10},
            {"type": "struct s", "field": "+0 (a)", "cycles": 15},
            {"type": "(no memory)", "field": "", "cycles": 75},
        ]});
        modelled.add_model(&model).expect("fields");
        let comparison = Comparison::new("program", sampled, modelled);
        assert_eq!(comparison.typed, (30.0, 25.0));
        assert_eq!(
            comparison.fields,
            [Field { name: "struct s +0 (a)".into(), sampled: 30.0, modelled: 25.0 }]
        );
        assert!(Shares::default().add_report(&json!({})).is_err());
    }
}
