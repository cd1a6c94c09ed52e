//! Sockets on which processes that we started listen, from /proc.

use std::collections::HashSet;
use std::fs;

/// The most processes that are looked at.
const PROCESSES: usize = 1000;

/// Returns the inode in a line's words, if the socket waits for others.
type InodeOf = fn(&[&str]) -> Option<u64>;

/// Files of a process's network namespace, and how a line of each is read.
const TABLES: [(&str, InodeOf); 5] =
    [("tcp", of_tcp), ("tcp6", of_tcp), ("udp", of_udp), ("udp6", of_udp), ("unix", of_unix)];

/// Returns `true` if a descendant of this process listens on a socket.
pub(super) fn any_descendant() -> bool {
    let mut processes = children(std::process::id());
    let mut at = 0;
    while let Some(&process) = processes.get(at) {
        if listens(process) {
            return true;
        }
        at += 1;
        let room = PROCESSES.saturating_sub(processes.len());
        processes.extend(children(process).into_iter().take(room));
    }
    false
}

/// Returns the children of a process, by all of its threads.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn listens(process: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let sockets: HashSet<u64> = files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect();
    !sockets.is_empty()
        && TABLES.iter().any(|(table, inode_of)| {
            let text = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
            text.lines().any(|line| {
                let words: Vec<&str> = line.split_ascii_whitespace().collect();
                inode_of(&words).is_some_and(|inode| sockets.contains(&inode))
            })
        })
}

/// The inode of a TCP socket in the state `TCP_LISTEN`.
fn of_tcp(words: &[&str]) -> Option<u64> {
    (*words.get(3)? == "0A").then(|| words.get(9)?.parse().ok())?
}

/// The inode of a UDP socket that is bound to a port and connected to none.
fn of_udp(words: &[&str]) -> Option<u64> {
    let is_bound = !words.get(1)?.ends_with(":0000");
    (is_bound && *words.get(3)? == "07").then(|| words.get(9)?.parse().ok())?
}

/// The inode of a Unix socket with the flag `__SO_ACCEPTCON`.
fn of_unix(words: &[&str]) -> Option<u64> {
    let flags = u64::from_str_radix(words.get(3)?, 16).ok()?;
    (flags & 0x1_0000 != 0).then(|| words.get(6)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_sockets_that_wait_for_others_are_counted() {
        fn words(line: &str) -> Vec<&str> {
            line.split_ascii_whitespace().collect()
        }
        let listening =
            "0: 0100007F:1CDF 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0 100 0";
        assert_eq!(of_tcp(&words(listening)), Some(4711));
        assert_eq!(of_tcp(&words(&listening.replace(" 0A ", " 01 "))), None);
        let bound = "7: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 12 2 0 0";
        assert_eq!(of_udp(&words(bound)), Some(12));
        assert_eq!(of_udp(&words(&bound.replace(":0035", ":0000"))), None);
        assert_eq!(of_unix(&words("0: 00000002 00000000 00010000 0001 01 99 /run/server")), Some(99));
        assert_eq!(of_unix(&words("0: 00000003 00000000 00000000 0001 03 98")), None);
        assert_eq!(of_tcp(&words("sl local_address")), None);
    }

    #[test]
    fn a_process_listens_by_each_kind_of_socket() {
        let own = std::process::id();
        let path = std::env::temp_dir().join(format!("tallyline-listening-{own}"));
        let listener = UnixListener::bind(&path).expect("bound");
        assert!(listens(own));
        drop(listener);
        std::fs::remove_file(path).expect("removed");
        let _tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
        assert!(listens(own));
        let _udp = UdpSocket::bind("127.0.0.1:0").expect("bound");
        assert!(listens(own));
    }
}
