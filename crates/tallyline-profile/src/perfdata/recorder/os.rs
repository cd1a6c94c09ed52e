//! The system calls of the recorder, and the memory it shares with the kernel: the only unsafe code
//! of this crate.

#![allow(unsafe_code, reason = "perf_event_open, its rings and fork have no safe interface in std")]

use crate::perfdata::attr::Attr;
use std::ffi::{CString, OsString};
use std::io::{self, Error, Read, Result, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
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

/// Stops an event.
pub(super) fn disable(event: &OwnedFd) -> Result<()> {
    control(event, IOC_DISABLE, 0)
}

/// Sends an event's records to the ring of another.
pub(super) fn set_output(event: &OwnedFd, to: &OwnedFd) -> Result<()> {
    control(event, IOC_SET_OUTPUT, to.as_raw_fd().into())
}

/// The number that an event's samples carry.
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

/// The bytes of a page.
pub(super) fn page_size() -> usize {
    // SAFETY: asks for a number
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// As many open files as are permitted; each thread needs one on each CPU for each event.
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

/// A ring that the kernel writes records to.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    len: usize,
    page: usize,
}

// where the kernel's page of control has its words, `struct perf_event_mmap_page`
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    /// A ring of so many pages, a power of two.
    pub(super) fn map(event: &OwnedFd, pages: usize) -> Result<Self> {
        let page = page_size();
        let len = (pages + 1) * page;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever there is room
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { base, len, page })
    }

    /// Hands over what is there, in one or two pieces that need not end with a record, and frees it.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let size = (self.len - self.page) as u64;
        // SAFETY: both words are in the first page, aligned, and only accessed atomically by us
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.base.as_ptr().add(DATA_HEAD).cast()),
                AtomicU64::from_ptr(self.base.as_ptr().add(DATA_TAIL).cast()),
            )
        };
        let end = head.load(Ordering::Acquire);
        let start = tail.load(Ordering::Relaxed);
        let count = end.wrapping_sub(start).min(size);
        if count == 0 {
            return Ok(());
        }
        let first = (start % size) as usize;
        let until_wrap = (count as usize).min(size as usize - first);
        // SAFETY: both pieces are within the mapping, and the kernel does not write between tail and
        // head until the tail moves, which happens after the last use
        let pieces = unsafe {
            let data = self.base.as_ptr().add(self.page);
            (
                std::slice::from_raw_parts(data.add(first), until_wrap),
                std::slice::from_raw_parts(data, count as usize - until_wrap),
            )
        };
        let result = take(pieces.0, pieces.1);
        tail.store(end, Ordering::Release);
        result
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of this length, and nothing points into it any more
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Asks a child that has not been waited for to end.
pub fn ask_to_end(child: &std::process::Child) {
    if let Ok(pid) = libc::pid_t::try_from(child.id()) {
        // SAFETY: our own child, which was not waited for, so the number is still its
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
    /// Makes the process; it waits.
    pub(super) fn prepare(command: &[OsString]) -> Result<Self> {
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

    /// Something that can be waited for and becomes readable when the command ends. `None` before
    /// Linux 5.3.
    pub(super) fn ending(&self) -> Option<OwnedFd> {
        // SAFETY: takes numbers
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the kernel has just made this descriptor for us
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The status that a shell would show, once the command has ended.
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
