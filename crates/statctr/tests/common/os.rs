//! System calls that std does not have, for tests: where threads run, forks, rseq registration.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns the CPUs that the calling thread may run on, of the first 1024.
pub(crate) fn cpus() -> Vec<usize> {
    // SAFETY: a mask of bits; all zeros is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes at most the size given.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: reads bits of the set, in range.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Returns the calling thread's number.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() }
}

/// Restricts a thread (0: the calling one) to some CPUs; `false` where the kernel refuses.
pub(crate) fn pin(thread: i32, to: &[usize]) -> bool {
    // SAFETY: a mask of bits; all zeros is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in to {
        // SAFETY: `cpu` came from a set of this size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: reads the size given.
    unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) == 0 }
}

/// Runs `work` while another thread moves the threads of `movable` from CPU to CPU.
pub(crate) fn while_moving<R>(movable: &[i32], work: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    let all = cpus();
    let result = std::thread::scope(|scope| {
        let _stop_at_end = super::StopAtEnd(&stop);
        scope.spawn(|| {
            let mut turn = 0;
            while !stop.load(Ordering::Relaxed) {
                turn += 1;
                for (index, &thread) in movable.iter().enumerate() {
                    pin(thread, &[all[(turn + index) % all.len()]]);
                }
                std::thread::yield_now();
            }
        });
        work()
    });
    movable.iter().for_each(|&thread| _ = pin(thread, &all));
    result
}

/// Runs `work` once for each of `places`, each on a thread of its own, and waits for all.
///
/// These are plain POSIX threads, which a forked child may make. The standard library's take a lock
/// of its own when they start, and another thread of the parent may have held it at the fork.
pub(crate) fn on_threads(places: &[usize], work: &(dyn Fn(usize) + Sync)) {
    struct Start<'a>(usize, &'a (dyn Fn(usize) + Sync));
    extern "C" fn start(argument: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: a `Start` that lives until the thread is joined.
        let Start(place, work) = unsafe { &*argument.cast::<Start<'_>>() };
        work(*place);
        std::ptr::null_mut()
    }
    let starts: Vec<Start<'_>> = places.iter().map(|&place| Start(place, work)).collect();
    let threads: Vec<libc::pthread_t> = starts
        .iter()
        .map(|argument| {
            // a number in glibc, a pointer in musl
            // SAFETY: zeros are a value of both.
            let mut thread: libc::pthread_t = unsafe { std::mem::zeroed() };
            let argument = std::ptr::from_ref(argument).cast_mut().cast();
            // SAFETY: `start` only reads the argument, which is joined with before it goes.
            let error = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), start, argument) };
            assert_eq!(error, 0, "a thread");
            thread
        })
        .collect();
    for thread in threads {
        // SAFETY: a thread made above, joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
    }
}

/// Calls `work` when the calling thread ends, after its thread-local variables and the ends that were asked for before
/// this was called first.
pub(crate) fn at_thread_end(work: impl FnOnce() + 'static) {
    static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();
    extern "C" fn run(work: *mut libc::c_void) {
        // SAFETY: the box below, once.
        let work = unsafe { Box::from_raw(work.cast::<Box<dyn FnOnce()>>()) };
        work();
    }
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: writes a key.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(run)) }, 0);
        key
    });
    let work: Box<Box<dyn FnOnce()>> = Box::new(Box::new(work));
    // SAFETY: a key that was made; the box is the destructor's.
    assert_eq!(unsafe { libc::pthread_setspecific(key, Box::into_raw(work).cast()) }, 0);
}

/// Runs `work` on a thread that nobody waits for.
pub(crate) fn detached(work: impl FnOnce() + Send + 'static) {
    drop(std::thread::spawn(work));
}

/// Runs `child` in a forked child, which must end within two minutes; `parent` meanwhile.
///
/// The child's exit status says whether `child` returned `true`; one that hangs is killed.
pub(crate) fn fork<R>(child: impl FnOnce() -> bool, parent: impl FnOnce() -> R) -> (R, ExitStatus) {
    // SAFETY: the child runs `child`, which is made for it, and ends without coming back here.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // a child that hangs ends, and its status says so
        // SAFETY: sets a timer whose signal ends this process.
        unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(120);
        }
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let result = parent();
    let mut status = 0;
    // SAFETY: waits for our own child.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {}
    (result, ExitStatus::from_raw(status))
}

/// Returns a command that runs one test of this program again, in a process of its own, with
/// `STATCTR_TEST_CHILD` set.
pub(crate) fn this_test(name: &str) -> Vec<String> {
    let program = std::env::current_exe().expect("own path");
    let program = program.to_str().expect("a path in UTF-8").to_owned();
    // an emulator, where this machine cannot run the program itself
    let runner = std::env::var("STATCTR_TEST_RUNNER").unwrap_or_default();
    let words = [&program, "--exact", name, "--nocapture", "--test-threads=1"];
    runner.split_whitespace().chain(words).map(str::to_owned).collect()
}

/// Runs a command with `STATCTR_TEST_CHILD` set.
pub(crate) fn run_child(command: &[String], environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).env("STATCTR_TEST_CHILD", "1");
    child.envs(environment.iter().copied()).output().expect("starts")
}

/// Runs a command with `STATCTR_TEST_CHILD` set, and expects it to end well.
pub(crate) fn expect_child(command: &[String], environment: &[(&str, &str)]) -> Output {
    let output = run_child(command, environment);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Returns `true` if this process was started by [`expect_child`].
pub(crate) fn is_child() -> bool {
    std::env::var_os("STATCTR_TEST_CHILD").is_some()
}

/// Returns `true` if a program can be started.
pub(crate) fn has_program(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns `true` if a command succeeds.
pub(crate) fn starts_well(command: &[String]) -> bool {
    Command::new(&command[0]).args(&command[1..]).output().is_ok_and(|output| output.status.success())
}

/// Sleeps without the tests' own bookkeeping in the way.
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Returns the bytes of a thread's rseq area that this kernel maintains (`AT_RSEQ_FEATURE_SIZE`, Linux 6.3); 0 if it does
/// not say.
pub(crate) fn rseq_feature_size() -> libc::c_ulong {
    const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: looks up a number.
    unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) }
}

/// Threads that libc does not make. With musl those must not count.
#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    target_env = "gnu",
    not(any(feature = "portable", feature = "uniprocessor"))
))]
pub(crate) mod raw_thread;

/// The calling thread's rseq registration.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux"))]
pub(crate) mod rseq {
    const SIGNATURE: u32 = if cfg!(target_arch = "x86_64") { 0x5305_3053 } else { 0xd428_bc00 };
    const UNREGISTER: u32 = 1;

    /// Returns the calling thread's thread pointer.
    pub(crate) fn thread_pointer() -> usize {
        let pointer: usize;
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads the thread pointer.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem))
        };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the thread pointer points to itself.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly))
        };
        pointer
    }

    /// Returns the calling thread's area, where there are any.
    fn area() -> Option<usize> {
        Some(thread_pointer().wrapping_add_signed(statctr::raw::rseq_area()?))
    }

    /// Returns the number of the calling thread's CPU, as its area says: below 0 where the thread is
    /// not registered.
    pub(crate) fn cpu() -> Option<i32> {
        // SAFETY: a field of the area.
        area().map(|area| unsafe { std::ptr::with_exposed_provenance::<i32>(area + 4).read_volatile() })
    }

    /// Returns the size of libc's areas, where libc registers threads.
    pub(crate) fn libc_area_bytes() -> Option<u32> {
        // SAFETY: looks up a constant that glibc may have.
        let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) }.cast::<u32>();
        // SAFETY: glibc's type of it.
        unsafe { size.as_ref() }.copied().filter(|size| *size > 0)
    }

    /// Returns the offset of libc's areas from the thread pointer, where libc registers threads.
    pub(crate) fn libc_area_offset() -> Option<isize> {
        libc_area_bytes()?;
        // SAFETY: looks up a constant that glibc has where it has the other one.
        let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) }.cast::<isize>();
        // SAFETY: glibc's type of it.
        unsafe { offset.as_ref() }.copied()
    }

    /// Registers another area for the calling thread and takes it back; the kernel's error number, which is `EINVAL`
    /// where the thread has an area, and 0 where it has none. Async-signal-safe.
    pub(crate) fn error_of_another_area() -> i32 {
        #[repr(align(32))]
        struct Area(std::cell::UnsafeCell<[u32; 8]>);
        let area = Area(std::cell::UnsafeCell::new([0; 8]));
        let call = |flags: u32| {
            // SAFETY: the area lives until it is taken back, in this function.
            unsafe { libc::syscall(libc::SYS_rseq, area.0.get(), size_of::<Area>(), flags, SIGNATURE) }
        };
        // SAFETY: libc's word for the calling thread.
        let error = || unsafe { *libc::__errno_location() };
        if call(0) != 0 || call(UNREGISTER) != 0 { error() } else { 0 }
    }

    fn call(size: u32, flags: u32) -> bool {
        let Some(area) = area() else { return false };
        // SAFETY: (un)registers the calling thread's area.
        unsafe { libc::syscall(libc::SYS_rseq, area, size, flags, SIGNATURE) == 0 }
    }

    /// Takes the calling thread's registration away; the size to put it back with. `None` where
    /// there was none.
    pub(crate) fn unregister() -> Option<u32> {
        // which size glibc gave to the kernel depends on its version
        (20..=256).find(|&size| call(size, UNREGISTER))
    }

    /// Registers the calling thread again. Also good where the library did so meanwhile.
    pub(crate) fn register(size: u32) -> bool {
        call(size, 0) || super::registers_by_itself()
    }
}

/// Returns `true` if the library registers threads that are not, when they count.
pub(crate) fn registers_by_itself() -> bool {
    matches!(statctr::registration(), Some(statctr::Registration::Own | statctr::Registration::Adopted))
}

/// The calling thread's rseq registration: there is none here.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
pub(crate) mod rseq {
    /// Takes the calling thread's registration away; `None` where there was none.
    pub(crate) fn unregister() -> Option<u32> {
        None
    }

    /// Returns the number of the calling thread's CPU: there is no area.
    pub(crate) fn cpu() -> Option<i32> {
        None
    }

    /// Returns the size of libc's areas: there are none.
    pub(crate) fn libc_area_bytes() -> Option<u32> {
        None
    }

    /// Registers the calling thread again.
    pub(crate) fn register(_size: u32) -> bool {
        false
    }
}
