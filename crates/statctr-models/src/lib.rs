//! Models of statctr's lock-free protocols: `tests/model.rs`.
//!
//! A crate of their own, as the model checker and what it depends on take longer to build than statctr with its tests,
//! which are built for seven targets and ways of linking.
