use super::*;

fn member(number: u32, name: &str, offset: u64, size: u64, children: Vec<Member>) -> Member {
    Member { number, ty: "int".into(), name: name.into(), offset, size, children, truncated: false }
}

/// Returns accesses to a struct of a union of an int and a struct of two ints, an int, and an empty base.
fn of_type(offsets: &[(u64, u64)]) -> TypeUse {
    let inner = vec![member(0, "b", 0, 4, Vec::new()), member(1, "c", 4, 4, Vec::new())];
    let union = vec![member(0, "a", 0, 4, Vec::new()), member(1, "s", 0, 8, inner)];
    let members =
        vec![member(0, "", 0, 1, Vec::new()), member(1, "u", 0, 8, union), member(2, "d", 8, 4, Vec::new())];
    let used = |samples| Use { samples, total: samples, ..Use::default() };
    let offsets = offsets.iter().map(|(offset, samples)| (*offset, used(*samples))).collect();
    TypeUse { members, events: vec![("cycles".into(), offsets)], ..TypeUse::default() }
}

#[test]
fn members_that_share_bytes_never_count_a_sample_twice() {
    let mut read = of_type(&[(0, 5), (4, 3), (8, 2), (12, 1)]);
    read.fill_rows();
    let samples = |path: &[u32]| read.of_member(path).samples;
    // the empty base has none of what lies on it
    assert_eq!((samples(&[0]), samples(&[1]), samples(&[2])), (0, 8, 2));
    // the first bytes of the union are of either member: neither row counts them, but the union's
    assert_eq!((samples(&[1, 0]), samples(&[1, 1]), samples(&[1, 1, 0]), samples(&[1, 1, 1])), (0, 3, 0, 3));
    let open: Vec<_> = read.open_in(&[1]).map(|(row, used)| (row.offset, used.samples)).collect();
    assert_eq!(open, [(0, 5)]);
    assert_eq!(read.open_in(&[]).count() + read.open_in(&[1, 1]).count(), 0);
    assert_eq!(samples(&[]), 11);
}

#[test]
fn an_access_of_one_member_or_another_is_counted_by_what_has_both() {
    let row =
        |members: &[&[u32]]| Row { offset: 0, members: members.iter().map(|path| path.to_vec()).collect() };
    assert_eq!(row(&[&[1, 0], &[1, 2, 3]]).common(), [1]);
    assert_eq!(row(&[&[1, 0], &[2]]).common(), [0_u32; 0]);
    assert_eq!(row(&[&[1, 0]]).common(), [1, 0]);
    assert_eq!(row(&[]).common(), [0_u32; 0]);
    assert!(row(&[&[], &[1]]).is_open() && !row(&[&[]]).is_open());
}
