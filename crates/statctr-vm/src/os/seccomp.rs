//! System calls of a thread that are refused, all or the nth: how a sandbox, or a lack of memory,
//! looks from inside.

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Action of the calling thread's filter on the calls that it looks for.
#[derive(Clone, Copy)]
enum Action {
    Refuse(i32),
    Ask,
}

/// Installs a seccomp filter that makes these system calls fail with `errno`, for the calling thread and all threads
/// and programs that it starts later.
pub(crate) fn refuse(calls: &[libc::c_long], errno: i32) -> io::Result<()> {
    install(calls, Action::Refuse(errno)).map(drop)
}

/// Installs a seccomp filter that suspends these system calls of the calling thread, and of threads and programs that
/// it starts later, until the returned listener's owner answers them.
pub(crate) fn ask(calls: &[libc::c_long]) -> io::Result<SyscallNotifications> {
    let listener = i32::try_from(install(calls, Action::Ask)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it for us.
    Ok(SyscallNotifications(unsafe { OwnedFd::from_raw_fd(listener) }))
}

fn install(calls: &[libc::c_long], action: Action) -> io::Result<libc::c_long> {
    let (verdict, flags) = match action {
        Action::Refuse(errno) => (libc::SECCOMP_RET_ERRNO | errno as u32, 0),
        Action::Ask => (libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
    };
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // the call's number is the first word of what a filter looks at
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &call in calls {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        let number = u32::try_from(call).map_err(io::Error::other)?;
        program.push(libc::sock_filter { code, jt: 0, jf: 1, k: number });
        program.push(statement(libc::BPF_RET | libc::BPF_K, verdict));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: both look only at what they are given; the program outlives the call.
    unsafe {
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        checked(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program))
    }
}

/// A seccomp listener: the file descriptor from which suspended system calls of filtered threads are received, one at a
/// time.
pub(crate) struct SyscallNotifications(OwnedFd);

/// A system call suspended by a seccomp filter until it is answered: its number and arguments.
pub(crate) struct NotifiedCall {
    id: u64,
    pub(crate) number: libc::c_long,
    pub(crate) arguments: [u64; 6],
}

// _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp)
const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;

impl SyscallNotifications {
    /// Waits for the next suspended system call and returns it; `None` once no filtered thread is left.
    pub(crate) fn next(&self) -> Option<NotifiedCall> {
        loop {
            let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor.
            unsafe { libc::poll(&raw mut poll, 1, -1) };
            if poll.revents & libc::POLLIN == 0 {
                if poll.revents & (libc::POLLHUP | libc::POLLERR) != 0 {
                    return None;
                }
                continue;
            }
            // SAFETY: plain numbers, of which zeros are some.
            let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: the kernel writes a call of this type.
            if unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &raw mut call) } == 0 {
                let number = call.data.nr.into();
                return Some(NotifiedCall { id: call.id, number, arguments: call.data.args });
            }
        }
    }

    /// Resumes a suspended system call: runs it if `refuse` is `None`, else makes it fail with that error number.
    pub(crate) fn answer(&self, call: &NotifiedCall, refuse: Option<i32>) {
        let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags: 0 };
        match refuse {
            Some(errno) => answer.error = -errno,
            None => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        }
        // SAFETY: the kernel reads an answer of this type; a caller that is gone is no matter.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw mut answer) };
    }
}
