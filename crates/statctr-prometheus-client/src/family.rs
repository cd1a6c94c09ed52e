//! Metrics of one name, by their labels: [`Family`].

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use statctr_facade::SeriesMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The labels of the metric for what is beyond the limit.
const OVERFLOW: [(&str, &str); 1] = [("overflow", "true")];

/// Metrics of one name, one for each label set, created on first use. Clones share the metrics.
///
/// A look-up takes no lock and writes no memory that other threads use. Metrics are never removed. Beyond a
/// [limit](Self::DEFAULT_LIMIT), further label sets are counted by one overflow metric with the label
/// `overflow="true"`, so that the sum over a family stays exact. A label set that is exported as that label alone is
/// counted by it, too, at the cost of writing its text with each look-up.
pub struct Family<S, M>(Arc<Inner<S, M>>);

struct Inner<S, M> {
    metrics: SeriesMap<S, M>,
    overflow: M,
    overflowed: AtomicBool,
    make: Box<dyn Fn() -> statctr::Result<M> + Send + Sync>,
    /// Returns `true` for labels that are exported as those of the overflow metric are.
    is_overflow: fn(&S) -> bool,
    hasher: foldhash::fast::RandomState,
}

impl<S, M> Clone for Family<S, M> {
    fn clone(&self) -> Self {
        Family(Arc::clone(&self.0))
    }
}

impl<S: Clone + Hash + Eq, M> Family<S, M> {
    /// The largest number of metrics in a family, unless [`with_limit`](Self::with_limit) sets another.
    pub const DEFAULT_LIMIT: usize = 10_000;

    /// Creates an empty family (metrics of one name, one for each label set) whose metrics `make` creates.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(make: impl Fn() -> statctr::Result<M> + Send + Sync + 'static) -> statctr::Result<Self>
    where
        S: EncodeLabelSet + Send + Sync + 'static,
    {
        Family::with_limit(Self::DEFAULT_LIMIT, make)
    }

    /// Creates an empty family (metrics of one name, one for each label set) of at most `limit` metrics, which `make`
    /// creates; the overflow metric for further label sets is not included.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn with_limit(
        limit: usize,
        make: impl Fn() -> statctr::Result<M> + Send + Sync + 'static,
    ) -> statctr::Result<Self>
    where
        S: EncodeLabelSet + Send + Sync + 'static,
    {
        Ok(Family(Arc::new(Inner {
            metrics: SeriesMap::new(limit),
            overflow: make()?,
            overflowed: AtomicBool::new(false),
            make: Box::new(make),
            is_overflow,
            hasher: foldhash::fast::RandomState::default(),
        })))
    }

    /// Returns the metric with these labels, created if it does not exist; the overflow metric if the family is at its
    /// limit or there is no memory for another.
    pub fn get(&self, labels: &S) -> &M {
        let hash = self.0.hasher.hash_one(labels);
        // before the look-up, so that another thread's last metric is found
        let is_full = self.0.metrics.is_full();
        match self.0.metrics.get(hash, |there| there == labels) {
            Some(metric) => metric,
            None => self.make(hash, labels, is_full),
        }
    }

    #[cold]
    fn make(&self, hash: u64, labels: &S, is_full: bool) -> &M {
        // a metric of its own would be a second series of the overflow metric's labels
        let is_beyond = is_full || (self.0.is_overflow)(labels);
        // where that fails there may be memory for the next one
        let made = if is_beyond { None } else { (self.0.make)().ok() };
        let metric = made.and_then(|made| {
            let is = |there: &S| there == labels;
            self.0.metrics.get_or_insert(hash, is, || (labels.clone(), made))
        });
        metric.unwrap_or_else(|| {
            self.0.overflowed.store(true, Ordering::Relaxed);
            &self.0.overflow
        })
    }

    /// Returns the number of metrics in the family, without the overflow metric.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.metrics.len()
    }

    /// Returns `true` if the family has no metrics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.metrics.is_empty()
    }
}

/// A gauge of these labels, by whose text label sets of different types are compared.
struct Labelled<S>(S);

impl<S: EncodeLabelSet> EncodeMetric for Labelled<S> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_family(&self.0)?.encode_gauge(&0i64)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<S> fmt::Debug for Labelled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Labelled")
    }
}

/// Returns the text of a metric with these labels; empty where they cannot be encoded.
fn text_with<S: EncodeLabelSet + Send + Sync + 'static>(labels: S) -> String {
    // no encoder but a registry's can be had
    let mut registry = Registry::default();
    registry.register("labelled", "", Labelled(labels));
    let mut text = String::new();
    text::encode(&mut text, &registry).map_or_else(|_| String::new(), |()| text)
}

/// Returns `true` for labels that are exported as those of the overflow metric are, of whatever type they are.
fn is_overflow<S: Clone + EncodeLabelSet + Send + Sync + 'static>(labels: &S) -> bool {
    text_with(labels.clone()) == text_with(OVERFLOW)
}

impl<S, M: TypedMetric> TypedMetric for Family<S, M> {
    const TYPE: MetricType = M::TYPE;
}

impl<S: EncodeLabelSet, M: EncodeMetric + TypedMetric> EncodeMetric for Family<S, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, metric) in self.0.metrics.iter() {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        if self.0.overflowed.load(Ordering::Relaxed) {
            self.0.overflow.encode(encoder.encode_family(&OVERFLOW)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

impl<S: fmt::Debug, M: fmt::Debug> fmt::Debug for Family<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.metrics.fmt(f)
    }
}
