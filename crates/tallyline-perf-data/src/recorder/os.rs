//! The system calls of the recorder, and the memory it shares with the kernel: the only unsafe code
//! of this crate.

#![allow(unsafe_code, reason = "perf_event_open, its rings and fork have no safe interface in std")]

use crate::attr::Attr;
use crate::spe::TimeConversion;
use std::ffi::{CString, OsString};
use std::io::{self, Error, Read, Result, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_REFRESH: libc::c_ulong = 0x2402;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
/// `_IOR('$', 7, u64 *)`; the size is that of a pointer.
const IOC_ID: libc::c_ulong = 0x8000_2407 | (size_of::<usize>() as libc::c_ulong) << 16;

/// Closes the event when the program is replaced.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// Opens an event for a thread (−1: all) on a CPU (−1: all), in the group of `leader`.
pub(super) fn open_event(attr: &Attr, pid: i32, cpu: i32, leader: Option<BorrowedFd<'_>>) -> Result<OwnedFd> {
    let group = leader.map_or(-1, |leader| leader.as_raw_fd());
    let attr = attr.to_bytes();
    // SAFETY: the attributes are as long as they say, and the kernel only reads them
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), pid, cpu, group, FLAG_FD_CLOEXEC) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn control(event: &OwnedFd, request: libc::c_ulong, argument: libc::c_long) -> Result<()> {
    // SAFETY: these requests take numbers, no addresses
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Lets an event count.
pub(super) fn enable(event: &OwnedFd) -> Result<()> {
    control(event, IOC_ENABLE, 0)
}

/// Lets an event go on that the kernel has stopped. A number that is no descriptor any more is an error.
pub(super) fn enable_again(event: RawFd) -> Result<()> {
    // SAFETY: takes numbers, no addresses
    let result = unsafe { libc::ioctl(event, IOC_ENABLE as _, 0) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Lets an event go on for so many more samples; behind the last of them the kernel stops it.
pub(super) fn refresh(event: &OwnedFd, samples: u32) -> Result<()> {
    control(event, IOC_REFRESH, samples.into())
}

/// Disables an event, so that it takes no more samples.
pub(super) fn disable(event: &OwnedFd) -> Result<()> {
    control(event, IOC_DISABLE, 0)
}

/// Sends an event's records to the ring of another.
pub(super) fn set_output(event: &OwnedFd, to: &OwnedFd) -> Result<()> {
    control(event, IOC_SET_OUTPUT, to.as_raw_fd().into())
}

/// Returns the number that an event's samples carry.
pub(super) fn event_id(event: &OwnedFd) -> Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the request writes one word of 64 bits there
    let result = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ID as _, &raw mut id) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(id) }
}

/// Reads an event's words: as `read_format` says.
pub(super) fn read_words<const N: usize>(event: &OwnedFd) -> Result<[u64; N]> {
    let mut words = [0_u64; N];
    // SAFETY: the buffer is as long as the kernel is told
    let read = unsafe { libc::read(event.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    match usize::try_from(read) {
        Ok(read) if read == size_of_val(&words) => Ok(words),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(Error::last_os_error()),
    }
}

/// Waits until one of these can be read, a signal comes, or the time is over. Says for each whether
/// it has ended and need not be waited for again.
pub(super) fn wait(fds: &[RawFd], milliseconds: i32) -> Vec<bool> {
    let mut polled: Vec<_> =
        fds.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the array is as long as the kernel is told
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    const ENDED: i16 = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    polled.iter().map(|polled| polled.revents & ENDED != 0).collect()
}

/// Returns the size of a page in bytes.
pub(super) fn page_size() -> usize {
    // SAFETY: asks for a number
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Raises the limit of open files as far as permitted; each event needs one for each thread on each CPU.
pub(super) fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write the one structure
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Memory that is shared with the kernel.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps a file from an offset on; memory without a file where there is none.
    fn new(file: Option<&OwnedFd>, offset: usize, len: usize) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | if file.is_none() { libc::MAP_ANONYMOUS } else { 0 };
        let file = file.map_or(-1, AsRawFd::as_raw_fd);
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping, wherever there is room
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, file, offset) };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Self { base: NonNull::new(base.cast()).ok_or(io::ErrorKind::InvalidData)?, len })
    }

    /// Returns a word that the kernel may write, or reads.
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len);
        // SAFETY: within the mapping, which is as aligned as a page, and only accessed atomically by us
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Returns bytes that the kernel does not write as long as they are used.
    ///
    /// # Safety
    /// That is so.
    unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: within the mapping; nobody writes there, as the caller says
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of this length, and nothing points into it any more
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A ring that the kernel writes records to, and the buffer that hardware writes packets to where there is one.
#[derive(Debug)]
pub(super) struct Ring {
    /// A page of control, then the records.
    records: Mapping,
    packets: Option<Mapping>,
    page: usize,
}

// where the kernel's page of control has its words, `struct perf_event_mmap_page`
const LOCK: usize = 8;
const CAPABILITIES: usize = 40;
const TIME_SHIFT_MULTIPLIER: usize = 48;
const TIME_ZERO: usize = 64;
const TIME_CYCLES: usize = 80;
const TIME_MASK: usize = 88;
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const AUX_HEAD: usize = 1056;
const AUX_TAIL: usize = 1064;
const AUX_OFFSET: usize = 1072;
const AUX_SIZE: usize = 1080;

impl Ring {
    /// Maps a ring of so many pages, a power of two.
    pub(super) fn map(event: &OwnedFd, pages: usize) -> Result<Self> {
        let page = page_size();
        Ok(Self { records: Mapping::new(Some(event), 0, (pages + 1) * page)?, packets: None, page })
    }

    /// Adds the hardware's buffer of so many pages, a power of two. The event has to be the one that the ring was
    /// made for.
    pub(super) fn map_packets(&mut self, event: &OwnedFd, pages: usize) -> Result<()> {
        let (offset, size) = (self.records.len, pages * self.page);
        self.records.word(AUX_OFFSET).store(offset as u64, Ordering::Relaxed);
        self.records.word(AUX_SIZE).store(size as u64, Ordering::Release);
        self.packets = Some(Mapping::new(Some(event), offset, size)?);
        Ok(())
    }

    /// Hands over the records that are there, in one or two pieces that need not end with a record, and frees them.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let size = self.records.len - self.page;
        let (head, tail) = (self.records.word(DATA_HEAD), self.records.word(DATA_TAIL));
        let (start, end) = (tail.load(Ordering::Relaxed), head.load(Ordering::Acquire));
        let Some([first, second]) = pieces(start, end, size) else { return Ok(()) };
        let within = |piece: Range<usize>| piece.start + self.page..piece.end + self.page;
        // SAFETY: the kernel does not write between tail and head until the tail moves, which happens after the
        // last use
        let (first, second) =
            unsafe { (self.records.bytes(within(first)), self.records.bytes(within(second))) };
        let result = take(first, second);
        tail.store(end, Ordering::Release);
        result
    }

    /// Returns the position up to which the hardware's buffer is filled. The kernel's records about it are in
    /// the ring by then.
    pub(super) fn packets_end(&self) -> u64 {
        self.records.word(AUX_HEAD).load(Ordering::Acquire)
    }

    /// Hands over packets up to there, in one or two pieces, with where they begin counted from the start of the
    /// recording, and frees them. Says whether there were any.
    pub(super) fn drain_packets(
        &mut self,
        end: u64,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let Some(packets) = &self.packets else { return Ok(false) };
        let tail = self.records.word(AUX_TAIL);
        let start = tail.load(Ordering::Relaxed);
        let Some([first, second]) = pieces(start, end, packets.len) else { return Ok(false) };
        // SAFETY: the hardware does not write between tail and head until the tail moves, which happens after the
        // last use
        let (first, second) = unsafe { (packets.bytes(first), packets.bytes(second)) };
        let result = take(start, first, second);
        tail.store(end, Ordering::Release);
        result.map(|()| true)
    }

    /// Returns the conversion of the hardware's counter to the time of records, where the kernel gives it.
    pub(super) fn clock(&self) -> Option<TimeConversion> {
        const HAS_ZERO: u64 = 1 << 4;
        const IS_SHORT: u64 = 1 << 5;
        let word = |offset: usize| self.records.word(offset).load(Ordering::Relaxed);
        // the first half counts changes; it is odd while one goes on
        let changes = || {
            let [c0, c1, c2, c3, ..] = self.records.word(LOCK).load(Ordering::Acquire).to_ne_bytes();
            u32::from_ne_bytes([c0, c1, c2, c3])
        };
        for _ in 0..1000 {
            let before = changes();
            let capabilities = word(CAPABILITIES);
            let scale = word(TIME_SHIFT_MULTIPLIER).to_ne_bytes();
            let [_, _, s0, s1, m0, m1, m2, m3] = scale;
            let clock = TimeConversion {
                shift: u16::from_ne_bytes([s0, s1]).into(),
                multiplier: u32::from_ne_bytes([m0, m1, m2, m3]).into(),
                zero: word(TIME_ZERO),
                short: (capabilities & IS_SHORT != 0).then(|| (word(TIME_CYCLES), word(TIME_MASK))),
            };
            fence(Ordering::Acquire);
            if before % 2 == 0 && changes() == before {
                return (capabilities & HAS_ZERO != 0).then_some(clock);
            }
        }
        None
    }
}

/// Returns the bytes between two counts in a ring of a size: up to its end, and from its start on. None where
/// there are none.
fn pieces(start: u64, end: u64, size: usize) -> Option<[Range<usize>; 2]> {
    let count = end.wrapping_sub(start).min(size as u64) as usize;
    let first = (start % (size as u64).max(1)) as usize;
    let until_wrap = count.min(size - first);
    (count > 0).then(|| [first..first + until_wrap, 0..count - until_wrap])
}

/// Sends SIGTERM to the recorded command; does nothing if it has ended.
pub fn ask_to_end(child: &mut std::process::Child) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    if matches!(child.try_wait(), Ok(None)) {
        // SAFETY: our own child, which has just not been waited for, so the number is still its
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
}

/// A command that waits to be started, so that its events are open before its first instruction.
#[derive(Debug)]
pub(super) struct Child {
    pid: libc::pid_t,
    gate: Option<std::fs::File>,
    failure: std::fs::File,
    status: Option<i32>,
}

impl Child {
    /// Makes the process; it waits. Its standard output is the caller's, or the one that is named.
    pub(super) fn prepare(command: &[OsString], stdout: Option<BorrowedFd<'_>>) -> Result<Self> {
        let words = command.iter().map(|word| CString::new(word.clone().into_vec()));
        let words = words.collect::<std::result::Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let mut arguments: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
        arguments.push(std::ptr::null());
        let (gate_read, gate_write) = io::pipe()?;
        let (failure_read, failure_write) = io::pipe()?;
        // SAFETY: the child only calls functions that are safe after fork: no allocation, no locks
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(Error::last_os_error());
        }
        if pid == 0 {
            let (gate, failure) = (gate_read.as_raw_fd(), failure_write.as_raw_fd());
            // SAFETY: in the child, with descriptors and strings that the fork copied
            unsafe {
                libc::close(gate_write.as_raw_fd());
                let mut byte = 0_u8;
                if libc::read(gate, (&raw mut byte).cast(), 1) != 1 {
                    libc::_exit(0);
                }
                if stdout.is_some_and(|stdout| libc::dup2(stdout.as_raw_fd(), 1) < 0) {
                    libc::_exit(126);
                }
                // Rust's runtime ignores it; commands expect the default
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::execvp(arguments[0], arguments.as_ptr());
                let error = Error::last_os_error().raw_os_error().unwrap_or(0).to_ne_bytes();
                libc::write(failure, error.as_ptr().cast(), error.len());
                libc::_exit(127);
            }
        }
        let gate = Some(std::fs::File::from(OwnedFd::from(gate_write)));
        Ok(Self { pid, gate, failure: std::fs::File::from(OwnedFd::from(failure_read)), status: None })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the command begin, and waits until it has or could not.
    pub(super) fn start(&mut self) -> Result<()> {
        if let Some(mut gate) = self.gate.take() {
            gate.write_all(&[1])?;
        }
        let mut error = [0; 4];
        // the pipe is closed when the program is replaced
        match self.failure.read_exact(&mut error) {
            Ok(()) => Err(Error::from_raw_os_error(i32::from_ne_bytes(error))),
            Err(_) => Ok(()),
        }
    }

    /// Returns a descriptor that becomes readable when the command ends; `None` before Linux 5.3.
    pub(super) fn ending(&self) -> Option<OwnedFd> {
        // SAFETY: takes numbers
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the kernel has just made this descriptor for us
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Returns the status that a shell would show, once the command has ended.
    pub(super) fn try_wait(&mut self, is_final: bool) -> Option<i32> {
        if self.status.is_none() {
            let mut status = 0;
            let options = if is_final { 0 } else { libc::WNOHANG };
            // SAFETY: the kernel writes one status there
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, options) };
            if pid == self.pid {
                self.status = Some(match libc::WIFSIGNALED(status) {
                    true => 128 + libc::WTERMSIG(status),
                    false => libc::WEXITSTATUS(status),
                });
            }
        }
        self.status
    }

    /// Asks the command to end.
    pub(super) fn terminate(&self) {
        if self.status.is_none() {
            // SAFETY: our own child, which was not waited for, so the number is still its
            unsafe { libc::kill(self.pid, libc::SIGTERM) };
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // one that was never started ends by itself when the gate closes
        drop(self.gate.take());
        if self.status.is_none() {
            self.try_wait(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{attr_flag, sample};

    #[test]
    fn what_is_in_a_ring_is_one_piece_or_two() {
        assert_eq!(pieces(0, 0, 64), None);
        assert_eq!(pieces(0, 10, 64), Some([0..10, 0..0]));
        assert_eq!(pieces(60, 70, 64), Some([60..64, 0..6]));
        assert_eq!(pieces(64, 128, 64), Some([0..64, 0..0]), "full");
        assert_eq!(pieces(130, 190, 64), Some([2..62, 0..0]));
        // counts go on where 64 bits end
        assert_eq!(pieces(u64::MAX - 3, 4, 64), Some([60..64, 0..4]));
        // a kernel that wrote over it
        assert_eq!(pieces(0, 1000, 64), Some([0..64, 0..0]));
    }

    impl Ring {
        /// Creates memory in the place of the kernel's: 2 pages of records, 1 of packets.
        pub(in super::super) fn made_up() -> Self {
            let page = page_size();
            let mapped = |pages: usize| Mapping::new(None, 0, pages * page).expect("memory");
            Self { records: mapped(3), packets: Some(mapped(1)), page }
        }

        /// Writes packets as hardware does, and what the kernel then says of them.
        pub(in super::super) fn fill(&self, packets: &[u8], records: &[u8]) {
            let buffer = self.packets.as_ref().expect("it has one");
            write(buffer, 0..buffer.len, self.records.word(AUX_HEAD), packets);
            write(&self.records, self.page..self.records.len, self.records.word(DATA_HEAD), records);
        }
    }

    fn write(mapping: &Mapping, range: Range<usize>, head: &AtomicU64, bytes: &[u8]) {
        let at = head.load(Ordering::Relaxed);
        for (offset, byte) in bytes.iter().enumerate() {
            let place = range.start + (at as usize + offset) % range.len();
            // SAFETY: within the mapping, and no reference into it is there
            unsafe { mapping.base.as_ptr().add(place).write(*byte) };
        }
        head.store(at + bytes.len() as u64, Ordering::Release);
    }

    #[test]
    fn packets_are_taken_in_order_where_the_buffer_begins_anew_too() {
        let mut ring = Ring::made_up();
        let size = page_size() as u64;
        let stream: Vec<u8> = (0..size * 5).map(|index| (index % 251) as u8).collect();
        let (mut head, mut taken) = (0, Vec::new());
        // as hardware fills it: never over what was not taken
        for step in [1, 64, size, size - 1, 0, 700, 64, size / 2, size] {
            ring.fill(&stream[head as usize..(head + step) as usize], &[]);
            head += step;
            let end = ring.packets_end();
            let some = ring.drain_packets(end, |start, first, second| {
                assert_eq!(start, taken.len() as u64);
                taken.extend_from_slice(first);
                taken.extend_from_slice(second);
                Ok(())
            });
            assert_eq!(some.expect("nothing fails"), step > 0);
            assert_eq!(ring.records.word(AUX_TAIL).load(Ordering::Relaxed), head, "it is free again");
        }
        assert_eq!(taken, stream[..head as usize]);
    }

    #[test]
    fn what_came_after_the_ring_was_asked_is_left_for_the_next_time() {
        let mut ring = Ring::made_up();
        ring.records.word(AUX_HEAD).store(128, Ordering::Release);
        let end = ring.packets_end();
        ring.records.word(AUX_HEAD).store(256, Ordering::Release);
        let mut sizes = Vec::new();
        for end in [end, 256] {
            let mut take = |start, first: &[u8], second: &[u8]| {
                sizes.push((start, first.len() + second.len()));
                Ok(())
            };
            ring.drain_packets(end, &mut take).expect("nothing fails");
        }
        assert_eq!(sizes, [(0, 128), (128, 128)]);
        let failed = ring.drain_packets(300, |_, _, _| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(failed.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    }

    /// Returns the counter that hardware puts into its packets on Arm; on x86-64 the one that Intel's trace
    /// has.
    fn counter() -> Option<u64> {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads a counter that every such machine has
        return Some(unsafe { std::arch::x86_64::_rdtsc() });
        #[cfg(target_arch = "aarch64")]
        {
            let count: u64;
            // SAFETY: reads a counter that programs may read
            unsafe { std::arch::asm!("isb", "mrs {count}, cntvct_el0", count = out(reg) count) };
            return Some(count);
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        None
    }

    #[test]
    fn the_kernels_own_times_are_those_of_the_counter() {
        let attr = Attr {
            kind: 1,
            config: 9,
            sample_type: sample::TIME,
            flags: attr_flag::COMM | attr_flag::SAMPLE_ID_ALL | attr_flag::EXCLUDE_KERNEL,
            ..Attr::default()
        };
        let Ok(event) = open_event(&attr, 0, -1, None) else {
            return eprintln!("skipped: it is not permitted");
        };
        let Ok(mut ring) = Ring::map(&event, 2) else { return eprintln!("skipped: no memory for it") };
        let (Some(clock), Some(before)) = (ring.clock(), counter()) else {
            return eprintln!("skipped: this kernel does not say it");
        };
        // a thread that gets a name leaves a record with the time
        std::fs::write("/proc/thread-self/comm", "renamed").expect("own thread");
        let after = counter().expect("as before");
        let mut records = Vec::new();
        let mut take = |first: &[u8], second: &[u8]| {
            records.extend_from_slice(first);
            records.extend_from_slice(second);
            Ok(())
        };
        ring.drain(&mut take).expect("nothing fails");
        let time = records.last_chunk().copied().map(u64::from_ne_bytes).expect("its time comes last");
        assert!(
            (clock.time(before)..=clock.time(after)).contains(&time),
            "{clock:?} {before} {time} {after}"
        );
    }

    #[test]
    fn the_page_of_control_says_how_the_counter_becomes_time() {
        let ring = Ring::made_up();
        let store = |offset: usize, word: u64| ring.records.word(offset).store(word, Ordering::Relaxed);
        assert_eq!(ring.clock(), None, "the kernel does not say it");
        store(CAPABILITIES, 1 << 3 | 1 << 4);
        store(TIME_SHIFT_MULTIPLIER, u64::from_ne_bytes([48, 0, 21, 0, 1, 2, 0, 0]));
        store(TIME_ZERO, 77);
        let clock = TimeConversion { shift: 21, multiplier: 0x201, zero: 77, short: None };
        assert_eq!(ring.clock(), Some(clock));
        store(CAPABILITIES, 1 << 3 | 1 << 4 | 1 << 5);
        store(TIME_CYCLES, 5);
        store(TIME_MASK, 0xffff_ffff);
        assert_eq!(ring.clock(), Some(TimeConversion { short: Some((5, 0xffff_ffff)), ..clock }));
        // in the middle of a change
        store(LOCK, u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(ring.clock(), None);
    }
}
