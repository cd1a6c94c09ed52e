//! The kernel's messages about devices that come and go: a netlink socket, and waiting for it.
//!
//! Here because system calls are: what is done about them is in `hotplug`.

use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The group that the kernel itself sends to; udev sends to another.
const KERNEL_GROUP: u32 = 1;

/// A netlink socket for the kernel's uevents, which announce hotplug of CPUs.
#[derive(Debug)]
struct Uevents(OwnedFd);

impl Uevents {
    /// Opens the netlink socket for hotplug messages. `None` if the kernel or a sandbox refuses; containers
    /// permit it and deliver nothing.
    fn open() -> Option<Uevents> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes three numbers; what it returns is ours.
        let socket = unsafe {
            let socket = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_KOBJECT_UEVENT);
            (socket >= 0).then(|| OwnedFd::from_raw_fd(socket))?
        };
        // SAFETY: all zeros is an address; the kernel reads as many bytes as it has.
        let bound = unsafe {
            let mut address: libc::sockaddr_nl = std::mem::zeroed();
            address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            address.nl_groups = KERNEL_GROUP;
            let size = size_of_val(&address) as libc::socklen_t;
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size)
        };
        (bound == 0).then_some(Uevents(socket))
    }

    /// Returns the next pending hotplug message of the kernel, cut to the length of `buffer`; `None` if there
    /// is none.
    fn next<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        loop {
            // SAFETY: all zeros is an address; the kernel writes at most the sizes given.
            let (len, sender) = unsafe {
                let mut sender: libc::sockaddr_nl = std::mem::zeroed();
                let mut size = size_of_val(&sender) as libc::socklen_t;
                let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
                let socket = self.0.as_raw_fd();
                let len = libc::recvfrom(socket, start, room, 0, (&raw mut sender).cast(), &raw mut size);
                (len, sender.nl_pid)
            };
            let len = usize::try_from(len).ok()?;
            // others may send, too; the kernel is number 0
            if sender == 0 {
                return buffer.get(..len);
            }
        }
    }
}

/// A receiver of the kernel's CPU hotplug messages (netlink uevents), whose waiting also ends after a time or when a
/// [`Wakeup`] wakes it.
#[derive(Debug)]
pub(crate) struct Watch {
    /// `None` where the kernel or a sandbox refuses the messages.
    events: Option<Uevents>,
    woken: UnixStream,
}

/// A handle by which another thread ends the waiting of the thread that waits for CPU hotplug messages ([`Watch`]).
#[derive(Debug)]
pub(crate) struct Wakeup(UnixStream);

impl Watch {
    /// Creates a [`Watch`] for CPU hotplug messages and the [`Wakeup`] that ends its waiting. Hotplug messages sent
    /// from now on are not missed.
    ///
    /// # Errors
    /// The error of `socketpair`: no descriptors are left.
    pub(crate) fn new() -> std::io::Result<(Watch, Wakeup)> {
        let (wake, woken) = UnixStream::pair()?;
        Ok((Watch { events: Uevents::open(), woken }, Wakeup(wake)))
    }

    /// Waits for a CPU hotplug message of the kernel, for `span`, or until the [`Wakeup`] made with this is used;
    /// returns `true` in the last case.
    pub(crate) fn wait(&self, span: Duration) -> bool {
        let watched = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // negative numbers are passed over
        let socket = self.events.as_ref().map_or(-1, |events| events.0.as_raw_fd());
        let mut watched = [watched(socket), watched(self.woken.as_raw_fd())];
        let milliseconds = libc::c_int::try_from(span.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: writes to the two elements.
        unsafe { libc::poll(watched.as_mut_ptr(), 2, milliseconds) };
        watched[1].revents != 0
    }

    /// Returns the next pending hotplug message of the kernel, cut to the length of `buffer`; `None` if there
    /// is none.
    pub(crate) fn next<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        self.events.as_ref()?.next(buffer)
    }
}

impl Wakeup {
    /// Wakes the [`Watch`], whose present and future waits then end at once, by a message: a forked child may share the
    /// descriptor, so closing it is not enough.
    pub(crate) fn wake(self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
