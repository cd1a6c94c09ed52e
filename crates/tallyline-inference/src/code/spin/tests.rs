use super::*;
use std::process::Command;

/// Functions that wait, and functions that work, as compilers write them. The first are named `waits…`.
const SOURCE: &str = r#"
        .macro function name
        .globl \name
        .type \name, @function
\name:
        .endm
        .macro end name
        ret
        .size \name, . - \name
        .endm

# a word at a place that stays
        function waits_for_word
1:      pause
        mov (%rdi), %eax
        test %eax, %eax
        je 1b
        end waits_for_word

# redis's I/O threads: with patience
        function waits_with_patience
        mov $1000000, %eax
        jmp 2f
1:      sub $1, %eax
        je 3f
2:      mov (%rbp), %rdx
        test %rdx, %rdx
        je 1b
3:      end waits_with_patience

# redis's main thread: until a sum over an array is 0, all of it anew in each round
        function waits_for_sum
1:      xor %edx, %edx
        lea 64(%rdi), %rax
2:      mov (%rax), %rcx
        add $64, %rax
        add %rcx, %rdx
        cmp %rsi, %rax
        jne 2b
        test %rdx, %rdx
        jne 1b
        end waits_for_sum

# redis's main thread as gcc 12 has it: the array's length is read in each round, and kept for the next
        function waits_for_sum_of_some
1:      cmp $1, %esi
        jle 3f
        xor %ecx, %ecx
        mov $1, %eax
        lea 64(%rdi), %rdx
2:      add $1, %eax
        add $64, %rdx
        mov -64(%rdx), %rsi
        add %rsi, %rcx
        mov (%r8), %esi
        cmp %esi, %eax
        jl 2b
        test %rcx, %rcx
        jne 1b
3:      end waits_for_sum_of_some

# a turn of a ticket lock, whose number is in a register
        function waits_for_turn
1:      mov 4(%rdi), %eax
        cmp %esi, %eax
        jne 1b
        end waits_for_turn

# a search of a table
        function searches
1:      cmp %rsi, (%rdi)
        je 2f
        add $8, %rdi
        jmp 1b
2:      end searches

# a search by an index that is counted
        function searches_by_index
        xor %eax, %eax
1:      lea (%rdi,%rax,8), %rcx
        cmp %rsi, (%rcx)
        je 2f
        add $1, %rax
        jmp 1b
2:      end searches_by_index

# a list
        function follows
1:      mov (%rdi), %rdi
        test %rdi, %rdi
        jne 1b
        end follows

# a list whose next node is looked at a round later
        function follows_behind
1:      mov %rdi, %rsi
        mov (%rsi), %rdi
        cmp %rdx, (%rsi)
        jne 1b
        end follows_behind

# a sum of the same word: each round counts
        function sums
1:      add (%rdi), %rax
        cmp $1000, %rax
        jb 1b
        end sums

# a loop whose rounds are counted, and nothing that it reads matters
        function repeats
1:      mov (%rdi), %eax
        sub $1, %esi
        jne 1b
        end repeats

# a lock that is tried: each round writes
        function tries
1:      xor %eax, %eax
        lock cmpxchg %esi, (%rdi)
        jne 1b
        end tries

# one that asks another function
        function asks
1:      call waits_for_word
        cmpl $0, (%rdi)
        je 1b
        end asks

# the kernel's help
        function sleeps
1:      syscall
        cmpl $0, (%rdi)
        je 1b
        end sleeps

# redis's I/O threads in their loop of work: of it the wait alone, behind padding that falls into it
        function waits_between_works
1:      mov $1000000, %eax
        jmp 3f
        nopw 0x0(%rax,%rax,1)
2:      sub $1, %eax
        je 4f
3:      mov (%rbp), %rdx
        test %rdx, %rdx
        je 2b
4:      movq $0, (%rbp)
        call waits_for_word
        jmp 1b
        end waits_between_works

# work around a wait: of it the wait alone
        function serves
1:      cmpl $0, (%rdi)
        je 1b
        movl $0, (%rdi)
        sub $1, %esi
        jne 1b
        end serves
"#;

/// The assembled functions; none where there is no assembler for x86-64.
fn image() -> Option<Image> {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tallyline-spin-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, object) = (folder.join("spin.S"), folder.join("spin.so"));
    std::fs::write(&source, SOURCE).expect("written");
    let built = Command::new("cc").args(["-shared", "-nostdlib", "-o"]).arg(&object).arg(&source).status();
    let is_built = cfg!(target_arch = "x86_64") && built.is_ok_and(|status| status.success());
    let image = is_built.then(|| Image::parse(&std::fs::read(&object).expect("there")).expect("an image"));
    std::fs::remove_dir_all(folder).expect("removed");
    if image.is_none() {
        println!("skipped: needs a C compiler for x86-64");
    }
    image
}

/// The first and last distances from a function's start of its spin loops, and its size.
fn loops(image: &Image, name: &str) -> (Vec<(u64, u64)>, u64) {
    let start = image.address_of_symbol(name).expect("a function");
    let size = image.function_at(start).expect("a function").size();
    let body = Body::decode(image, std::slice::from_ref(&(start..start + size)), start);
    let of_start = |range: Range<u64>| (range.start - start, range.end - start);
    (spin_loops(image, &body).into_iter().map(of_start).collect(), size)
}

#[test]
fn loops_that_only_wait_are_found() {
    let Some(image) = image() else { return };
    for name in ["waits_for_word", "waits_for_sum", "waits_for_sum_of_some", "waits_for_turn"] {
        let (found, size) = loops(&image, name);
        // all but the return
        assert_eq!(found, [(0, size - 1)], "{name}");
    }
    // the first number of rounds, and the jump behind it, are not in the loop
    let (found, size) = loops(&image, "waits_with_patience");
    assert_eq!(found, [(7, size - 1)]);
}

#[test]
fn loops_that_do_something_are_no_waits() {
    let Some(image) = image() else { return };
    for name in [
        "searches",
        "searches_by_index",
        "follows",
        "follows_behind",
        "sums",
        "repeats",
        "tries",
        "asks",
        "sleeps",
    ] {
        assert_eq!(loops(&image, name).0, [], "{name}");
    }
}

#[test]
fn of_a_loop_that_works_the_inner_one_may_wait() {
    let Some(image) = image() else { return };
    // cmpl $0,(%rdi); je: three bytes and two
    assert_eq!(loops(&image, "serves").0, [(0, 5)]);
    // the number of rounds, the jump and the padding are 5, 2 and 5 bytes
    assert_eq!(loops(&image, "waits_between_works").0, [(12, 26)]);
}

#[test]
fn any_code_has_loops_within_its_bounds() {
    // this very program
    let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
    let image = Image::parse(&bytes).expect("an ELF file");
    for function in image.functions().iter().filter(|function| function.size() > 0).take(2000) {
        let range = function.address()..function.address() + function.size();
        let body = Body::decode(&image, std::slice::from_ref(&range), range.start);
        let found = spin_loops(&image, &body);
        assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{found:?}");
        assert!(found.iter().all(|found| range.start <= found.start && found.end <= range.end), "{found:?}");
    }
}
