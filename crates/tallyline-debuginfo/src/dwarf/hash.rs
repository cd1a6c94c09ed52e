//! The hashes by which types are compared.

use super::entry::Traits;
use super::units::{Context, Units};
use foldhash::quality::{FixedState, FoldHasher};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Hashes the attributes by which two members are equal, whatever their types are.
pub(super) fn hash_member<'a>(
    units: &Units<'a>,
    unit: usize,
    context: &Context,
    member: &Traits<'a>,
    hash: &mut Hash,
) {
    let named = member.name.is_some_and(|name| units.hash_string(unit, context, &name, hash));
    hash.write_u8(u8::from(named));
    member.numbers.iter().for_each(|number| number.hash(hash));
}

/// Two hashes at once. They are keyed: a file cannot be made so that its types are taken for each other.
pub(super) struct Hash {
    one: FoldHasher<'static>,
    other: FoldHasher<'static>,
}

/// The keys, other ones each time that the program runs.
static KEYS: LazyLock<[FixedState; 2]> = LazyLock::new(|| {
    let random = RandomState::new();
    [0, 1].map(|number: u64| FixedState::with_seed(random.hash_one(number)))
});

impl Default for Hash {
    fn default() -> Hash {
        let [one, other] = &*KEYS;
        Hash { one: one.build_hasher(), other: other.build_hasher() }
    }
}

impl Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        self.one.write(bytes);
        self.other.write(bytes);
    }

    fn write_u8(&mut self, number: u8) {
        self.one.write_u8(number);
        self.other.write_u8(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.one.write_u64(number);
        self.other.write_u64(number);
    }

    fn finish(&self) -> u64 {
        self.one.finish()
    }
}

impl Hash {
    pub(super) fn key(&self) -> (u64, u64) {
        (self.one.finish(), self.other.finish())
    }
}
