//! Containers made by hand.
