use super::Division;
use super::candidates::{Candidates, FunctionSamples, Origin};
use super::lines::Lines;
use crate::last_branches::LastBranch;
use crate::skid::Rule;
use crate::skid::fusion::{FusionRules, PairCounts, RuleSource};
use crate::skid::shift::{self, ShiftCounts};
use rustc_hash::FxHashMap;
use std::process::Command;
use tallyline_inference::code::{Body, Image, Machine, Register};

/// Functions whose labels are symbols, so that samples can be put at them.
const SOURCE: &str = r#"
        .text
        .globl pair, join, store_join, loads
        .type pair, @function
pair:   mov (%rdi), %rax
pair_cmp:
        cmp 8(%rsi), %rax
pair_jump:
        jb pair_taken
pair_next:
        mov 16(%rsi), %rax
        ret
pair_taken:
        mov 24(%rsi), %rax
        ret
        .size pair, . - pair
        .type store_join, @function
store_join:
        mov %rdi, %rcx
store_join_cmp:
        cmp 8(%rcx), %rax
store_join_jump:
        jae store_join_out
        mov 16(%rcx), %rdx
        add $100, %rdx
store_join_store:
        mov %rdx, 16(%rcx)
store_join_out:
        addq $1, 24(%rcx)
        ret
        .size store_join, . - store_join
        .type join, @function
join:   mov %rdi, %rcx
join_cmp:
        cmp 8(%rcx), %rax
        jae join_out
join_next:
        nop
join_load:
        mov 8(%rdx), %rax
join_out:
        add $1, %rax
        ret
        .size join, . - join
        .type strings, @function
strings:
        mov %rsi, %rcx
strings_move:
        rep movsb
strings_moved:
        lea -32(%rsp), %rsi
strings_out:
        movsq
strings_behind_out:
        mov %rdx, %rsi
strings_compare:
        cmpsb
strings_compared:
        mov %rdx, %rdi
strings_fill:
        rep stosb
strings_filled:
        ret
        .size strings, . - strings
        .type lines, @function
lines:  mov (%rdi), %rax
        mov %rdi, %r8
        lea 16(%rdi), %rbx
lines_same:
        mov 8(%r8), %rax
lines_moved:
        mov -8(%rbx), %rax
lines_far:
        mov 72(%rdi), %rax
        mov %rdx, %rdi
lines_other:
        mov (%rdi), %rax
        mov 48(%rdx), %rcx
lines_between:
        mov 40(%rdi), %rcx
lines_likely_far:
        mov 100(%rdi), %rcx
        call lines
lines_behind_call:
        mov -8(%rbx), %rax
lines_lost_in_call:
        mov (%rdi), %rax
        ret
        .size lines, . - lines
        .type ways, @function
ways:   mov (%rsi), %rax
        test %rax, %rax
        je ways_join
        mov (%rdi), %rax
ways_join:
        mov (%rsi), %rax
ways_one:
        mov (%rdi), %rax
ways_loop:
        mov (%rdx), %rax
        dec %rcx
        jne ways_loop
        ret
        .size ways, . - ways
        .type stores, @function
stores: mov %rsi, %rcx
stores_loop:
        mov %rcx, counter(%rip)
stores_before:
        mov (%rdi), %rdx
        add $8, %rdi
        mov %rcx, 8(%rdx)
stores_missed:
        mov %rcx, 16(%rdx)
stores_second:
        mov %rcx, 24(%rdx)
stores_third:
        dec %rcx
        jne stores_loop
        ret
        .size stores, . - stores
        .type itself, @function
itself: mov (%rsi), %rcx
itself_loop:
        mov (%rsi), %rcx
        shl $6, %rcx
itself_quiet:
        lea (%rdi,%rcx), %rdx
itself_load:
        mov (%rdx), %rax
itself_behind:
        add %rax, %r8
        mov 8(%rdx), %rax
itself_reload:
        mov 64(%rdx), %rax
itself_reload_behind:
        add %rax, %r8
        div %r8
itself_divided:
        mov 128(%rdx), %rax
itself_divided_behind:
        add $8, %rsi
        cmp %rsi, %r9
        jne itself_loop
        ret
        .size itself, . - itself
        .type buffers, @function
buffers:
        mov %rsi, %rcx
buffers_loop:
        mov %rcx, %rax
        shl $3, %rax
buffers_shift:
        xor %rcx, %rax
        mov %rax, counter(%rip)
        mov (%rdi), %rdx
        add $8, %rdi
        mov %rcx, 8(%rdx)
buffers_missed:
        mov %rcx, 16(%rdx)
buffers_second:
        mov %rcx, 24(%rdx)
buffers_third:
        dec %rcx
        jne buffers_loop
        ret
        .size buffers, . - buffers
        .type increments, @function
increments:
        mov $10000, %edx
increments_load:
        mov (%rdi), %rax
increments_add:
        add $1, %rax
        mov %rax, (%rdi)
increments_sub:
        sub $1, %edx
        jne increments_load
        ret
        .size increments, . - increments
        .type shift, @function
shift:  add $1, %rax
        add $1, %rax
        add $1, %rax
        add $1, %rax
shift_load:
        mov (%rdi), %rcx
        add $1, %rax
        add $1, %rax
        add $1, %rax
        add $1, %rax
        add $1, %rax
        ret
        .size shift, . - shift
        .type filled, @function
filled: mov (%rdi), %rax
        cmp 8(%rsi), %rax
        jb filled_taken
        ret
        nopl 0(%rax)
        nop
filled_taken:
        mov 24(%rsi), %rax
        ret
        .size filled, . - filled
        .bss
counter: .quad 0
"#;

struct Program {
    image: Image,
    symbols: FxHashMap<String, u64>,
}

impl Program {
    fn new(name: &str) -> Option<Program> {
        let folder = std::env::temp_dir();
        let path = |suffix: &str| folder.join(format!("attribution-{name}-{}.{suffix}", std::process::id()));
        // labels that a function contains stay symbols, as they do not begin with .L
        std::fs::write(path("s"), SOURCE).expect("written");
        let arguments = ["-nostdlib", "-static", "-Wl,-e,pair", "-o"];
        let made = Command::new("gcc").args(arguments).arg(path("elf")).arg(path("s")).output();
        if cfg!(not(target_arch = "x86_64")) || !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: no gcc for x86-64");
            return None;
        }
        let bytes = std::fs::read(path("elf")).expect("the program");
        let image = Image::parse(&bytes).expect("an image");
        let listed = Command::new("nm").arg(path("elf")).output().expect("nm");
        let symbols = String::from_utf8_lossy(&listed.stdout)
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((words.nth(1)?.to_owned(), address))
            })
            .collect();
        std::fs::remove_file(path("s")).and(std::fs::remove_file(path("elf"))).expect("removed");
        Some(Program { image, symbols })
    }

    fn at(&self, label: &str) -> u64 {
        self.symbols[label]
    }

    /// Samples at labels of a function: the rule for one of them, and the labels that its samples are charged to.
    fn decide(
        &self,
        function: &str,
        samples: &[(&str, u64)],
        at: &str,
        cpu: &str,
    ) -> (Rule, Vec<(String, f64)>) {
        self.decide_with(function, samples, &[], at, cpu)
    }

    /// Decides with the newest branches of the samples at the label: source, target, and how many have each.
    fn decide_with(
        &self,
        function: &str,
        samples: &[(&str, u64)],
        branches: &[(u64, u64, u64)],
        at: &str,
        cpu: &str,
    ) -> (Rule, Vec<(String, f64)>) {
        let body = self.body(function);
        let counts = samples.iter().map(|(label, samples)| (self.at(label), *samples)).collect();
        let last = |(from, to, samples): &(u64, u64, u64)| {
            LastBranch::relative(self.at(at), *from, *to).map(|last| (last, *samples))
        };
        let branches = FxHashMap::from_iter([(self.at(at), branches.iter().filter_map(last).collect())]);
        let view = FunctionSamples::new(&body, Machine::X86_64, &counts).with_branches(&branches);
        let mut pairs = PairCounts::default();
        let all: Vec<Candidates> =
            counts.keys().filter_map(|address| view.candidates(*address, &mut pairs)).collect();
        let rules = FusionRules::new(Some(cpu), &pairs);
        let wanted = all.iter().find(|candidates| candidates.address() == self.at(at)).expect("candidates");
        let (rule, shares) = wanted.decide(&|pair| rules.is_fused(pair), &|_| None).expect("a verdict");
        let name = |origin: Origin| match origin {
            Origin::Instruction(address) => {
                let label = self.symbols.iter().find(|(_, at)| **at == address);
                label.map_or_else(|| format!("{address:#x}"), |(label, _)| label.clone())
            }
            Origin::SecondOperand(address) => format!("second operand at {address:#x}"),
            Origin::CallOrReturn => "call or return".to_owned(),
            Origin::IndirectCall => "indirect call".to_owned(),
        };
        (rule, shares.into_iter().map(|(origin, share)| (name(origin), share)).collect())
    }
}

impl Program {
    fn body(&self, function: &str) -> Body {
        let symbol =
            self.image.functions().iter().find(|symbol| symbol.name() == function).expect("it").clone();
        let range = symbol.address()..symbol.address() + symbol.size();
        Body::decode(&self.image, std::slice::from_ref(&range), symbol.address())
    }

    /// Returns the probability that the line of the access at a label was not touched on the paths to it.
    fn untouched(&self, function: &str, label: &str) -> f64 {
        let body = self.body(function);
        let position = body.position(self.at(label)).expect("an instruction");
        let memory = body.instructions()[position].memory().expect("an operand");
        Lines { body: &body, machine: Machine::X86_64 }.untouched(position, memory, &|_| 1.0)
    }
}

const INTEL: &str = "GenuineIntel-6-207-2";
const AMD: &str = "AuthenticAMD-26-2-1";

#[test]
fn samples_behind_a_pair_with_none_between_its_halves_are_those_of_its_compare() {
    let Some(program) = Program::new("fused") else { return };
    // both ways behind the jump, on a CPU of which nothing is known
    let samples = [("pair_next", 400), ("pair_taken", 300)];
    for at in ["pair_next", "pair_taken"] {
        let verdict = program.decide("pair", &samples, at, "");
        assert_eq!(verdict, (Rule::FusedPair, vec![("pair_cmp".to_owned(), 1.0)]));
    }
}

#[test]
fn the_filling_in_front_of_a_block_is_no_way_to_it() {
    let Some(program) = Program::new("filling") else { return };
    // learnt behind the jump, though the filling could be taken for another way there
    let samples = [("filled_taken", 400)];
    let (rule, shares) = program.decide("filled", &samples, "filled_taken", "");
    let body = program.body("filled");
    assert_eq!((rule, shares.len()), (Rule::FusedPair, 1));
    assert_eq!(shares[0].0, format!("{:#x}", body.instructions()[1].address()));
}

#[test]
fn samples_between_the_halves_of_a_pair_say_that_it_is_two_instructions() {
    let Some(program) = Program::new("unfused") else { return };
    let samples = [("pair_jump", 300), ("pair_next", 100)];
    for cpu in [AMD, INTEL] {
        let verdict = program.decide("pair", &samples, "pair_jump", cpu);
        assert_eq!(verdict, (Rule::Previous, vec![("pair_cmp".to_owned(), 1.0)]));
        let verdict = program.decide("pair", &samples, "pair_next", cpu);
        assert_eq!(verdict, (Rule::Previous, vec![("pair_jump".to_owned(), 1.0)]));
    }
}

#[test]
fn the_vendor_decides_where_samples_are_few() {
    let Some(program) = Program::new("vendor") else { return };
    let samples = [("pair_next", 3)];
    assert_eq!(program.decide("pair", &samples, "pair_next", INTEL).1[0].0, "pair_cmp");
    assert_eq!(program.decide("pair", &samples, "pair_next", AMD).1[0].0, "pair_jump");
    assert_eq!(program.decide("pair", &samples, "pair_next", "").1[0].0, "pair_jump");
}

#[test]
fn a_store_to_a_line_that_was_just_read_is_not_what_a_join_waited_for() {
    let Some(program) = Program::new("store-join") else { return };
    let samples = [("store_join_out", 700), ("store_join_store", 9)];
    let (rule, shares) = program.decide("store_join", &samples, "store_join_out", INTEL);
    assert_eq!((rule, &shares[..]), (Rule::OnlyStall, &[("store_join_cmp".to_owned(), 1.0)][..]));
}

#[test]
fn a_join_of_two_loads_is_divided_by_how_often_control_comes_from_each() {
    let Some(program) = Program::new("join") else { return };
    // what retires evenly has as many samples as often control comes by: half of the first block jumps
    let samples = [("join_out", 1000), ("join", 40), ("join_cmp", 40), ("join_next", 20), ("join_load", 20)];
    let (rule, shares) = program.decide("join", &samples, "join_out", INTEL);
    assert_eq!(rule, Rule::Divided);
    let share = |label: &str| shares.iter().find(|(name, _)| name == label).expect("a share").1;
    assert!((0.25..0.75).contains(&share("join_cmp")), "{shares:?}");
    assert!((share("join_cmp") + share("join_load") - 1.0).abs() < 1e-9, "{shares:?}");
}

#[test]
fn at_a_join_the_branch_stack_says_which_way_each_sample_came() {
    let Some(program) = Program::new("branches") else { return };
    let samples = [("join_out", 1000), ("join", 40), ("join_cmp", 40), ("join_next", 20), ("join_load", 20)];
    let jump = {
        let body = program.body("join");
        body.instructions()[body.position(program.at("join_next")).expect("it") - 1].address()
    };
    let (out, entry, next) = (program.at("join_out"), program.at("join"), program.at("join_next"));
    let decide = |branches: &[(u64, u64, u64)], cpu| {
        let (rule, mut shares) = program.decide_with("join", &samples, branches, "join_out", cpu);
        shares.sort_by(|one, other| one.0.cmp(&other.0));
        (rule, shares)
    };
    // some jumped, on a CPU that retires the compare with the jump as one; the others fell through from the entry
    let both = [(jump, out, 700), (0x10, entry, 300)];
    let expected = vec![("join_cmp".to_owned(), 0.7), ("join_load".to_owned(), 0.3)];
    assert_eq!(decide(&both, INTEL), (Rule::BranchStack, expected));
    // as two instructions it is the jump that retired last; more samples would have taught that it is one
    let few = program.decide_with("join", &[("join_out", 9)], &[(jump, out, 9)], "join_out", AMD);
    assert_eq!(few, (Rule::BranchStack, vec![(format!("{jump:#x}"), 1.0)]));
    // all fell through
    let expected = vec![("join_load".to_owned(), 1.0)];
    assert_eq!(decide(&[(0x10, next, 1000)], INTEL), (Rule::BranchStack, expected));
    // few have a stack, or it speaks of a way that the code has not
    for branches in [(jump, out, 200), (entry, out, 1000), (0x10, out - 1, 1000)] {
        assert_eq!(decide(&[branches], INTEL).0, Rule::Divided, "{branches:x?}");
    }
}

#[test]
fn a_string_move_waits_for_what_it_reads_unless_that_is_the_stack() {
    let Some(program) = Program::new("strings") else { return };
    let decide = |label: &str| program.decide("strings", &[(label, 100)], label, AMD);
    assert_eq!(decide("strings_moved"), (Rule::Previous, vec![("strings_move".to_owned(), 1.0)]));
    let out = format!("second operand at {:#x}", program.at("strings_out"));
    assert_eq!(decide("strings_behind_out").1, [(out, 1.0)]);
    // of a comparison's two operands either can stall
    let (rule, shares) = decide("strings_compared");
    let second = format!("second operand at {:#x}", program.at("strings_compare"));
    assert_eq!(rule, Rule::Divided);
    assert_eq!(shares, [("strings_compare".to_owned(), 0.5), (second, 0.5)]);
}

#[test]
fn samples_at_a_repeated_string_instruction_are_its_own() {
    let Some(program) = Program::new("repeated") else { return };
    for label in ["strings_move", "strings_fill"] {
        let verdict = program.decide("strings", &[(label, 100)], label, AMD);
        assert_eq!(verdict, (Rule::Repeated, vec![(label.to_owned(), 1.0)]));
    }
}

#[test]
fn what_the_way_to_an_access_has_touched_is_not_waited_for_again() {
    let Some(program) = Program::new("lines") else { return };
    let untouched = |label: &str| program.untouched("lines", label);
    // through a copy of the register, and a sum with it
    assert!(untouched("lines_same") < 0.2 && untouched("lines_moved") < 0.2);
    // an object of several lines, another object in the register, part of a line away
    assert_eq!((untouched("lines_far"), untouched("lines_other")), (1.0, 1.0));
    assert!((0.5..1.0).contains(&untouched("lines_likely_far")));
    // between two that cannot be in two other lines
    assert!(untouched("lines_between") < 0.05);
    // a call leaves the register and most lines, or nothing is known of the register
    assert!((0.05..0.2).contains(&untouched("lines_behind_call")));
    assert_eq!(untouched("lines_lost_in_call"), 1.0);
}

#[test]
fn where_ways_meet_a_line_is_touched_as_often_as_control_comes_from_where_it_was() {
    let Some(program) = Program::new("ways") else { return };
    let untouched = |label: &str| program.untouched("ways", label);
    assert!(untouched("ways_join") < 0.05);
    assert!((0.4..0.6).contains(&untouched("ways_one")));
    // the loop comes back as often as it is entered, here
    assert!((0.4..0.6).contains(&untouched("ways_loop")));
}

#[test]
fn a_store_to_a_touched_line_waits_for_the_one_store_that_can_miss() {
    let Some(program) = Program::new("stores") else { return };
    let missed = [
        ("stores_missed", 4000),
        ("stores_second", 500),
        ("stores_third", 300),
        ("stores_before", 200),
        ("stores_loop", 20),
    ];
    let body = program.body("stores");
    let position = body.position(program.at("stores_missed")).expect("an instruction") - 1;
    let first = format!("{:#x}", body.instructions()[position].address());
    for label in ["stores_second", "stores_third", "stores_before"] {
        let verdict = program.decide("stores", &missed, label, INTEL);
        assert_eq!(verdict, (Rule::StoreWaitedFor, vec![(first.clone(), 1.0)]), "{label}");
    }
    // where all retire evenly each has its own
    let even = missed.map(|(label, _)| (label, 100));
    for label in ["stores_second", "stores_third", "stores_before"] {
        let (rule, shares) = program.decide("stores", &even, label, INTEL);
        assert_eq!((rule, shares.len()), (Rule::Previous, 1), "{label}");
        assert_ne!(shares[0].0, first, "{label}");
    }
}

#[test]
fn samples_at_a_load_behind_what_cannot_stall_are_the_loads() {
    let Some(program) = Program::new("itself") else { return };
    let stalled = [
        ("itself_load", 300),
        ("itself_behind", 2000),
        ("itself_reload", 200),
        ("itself_reload_behind", 900),
        ("itself_quiet", 9),
        ("itself_loop", 11),
    ];
    // behind a register's instruction, and behind a load of the line that was just loaded from
    for label in ["itself_load", "itself_reload"] {
        let verdict = program.decide("itself", &stalled, label, AMD);
        assert_eq!(verdict, (Rule::Itself, vec![(label.to_owned(), 1.0)]));
    }
    // most are behind the load in any case
    let verdict = program.decide("itself", &stalled, "itself_behind", AMD);
    assert_eq!(verdict, (Rule::Previous, vec![("itself_load".to_owned(), 1.0)]));
}

#[test]
fn samples_at_a_load_are_those_of_what_retired_where_that_may_have_taken_time() {
    let Some(program) = Program::new("not-itself") else { return };
    let previous = |samples: &[(&str, u64)], at: &str| {
        let (rule, shares) = program.decide("itself", samples, at, AMD);
        assert_eq!((rule, shares.len()), (Rule::Previous, 1), "{at}");
        assert_ne!(shares[0].0, at);
    };
    let divided = [("itself_divided", 300), ("itself_divided_behind", 2000), ("itself_quiet", 9)];
    // a division takes time of its own
    previous(&divided, "itself_divided");
    // what retires evenly
    let labels =
        ["itself_loop", "itself_quiet", "itself_load", "itself_behind", "itself_reload", "itself_divided"];
    previous(&labels.map(|label| (label, 100)), "itself_load");
    // a load that few samples are behind did not stall
    previous(&[("itself_load", 300), ("itself_behind", 20), ("itself_quiet", 9)], "itself_load");
}

#[test]
fn samples_at_a_store_without_a_buffer_are_those_of_the_store_that_misses() {
    let Some(program) = Program::new("buffer") else { return };
    let samples =
        [("buffers_shift", 900), ("buffers_missed", 1400), ("buffers_second", 30), ("buffers_third", 35)];
    let body = program.body("buffers");
    let position = body.position(program.at("buffers_missed")).expect("an instruction") - 1;
    let first = format!("{:#x}", body.instructions()[position].address());
    let verdict = program.decide("buffers", &samples, "buffers_shift", AMD);
    assert_eq!(verdict, (Rule::StoreWaitedFor, vec![(first, 1.0)]));
}

#[test]
fn a_mispredicted_jump_with_samples_of_its_own_is_not_learnt_as_fused() {
    let Some(program) = Program::new("mispredicted") else { return };
    // twenty cycles behind the jump for half a cycle at it
    let samples = [("pair_jump", 20), ("pair_next", 800)];
    assert_eq!(program.decide("pair", &samples, "pair_next", INTEL).1[0].0, "pair_jump");
}

#[test]
fn rules_say_whether_they_were_learnt() {
    let Some(program) = Program::new("learnt") else { return };
    let symbol = program.image.functions().iter().find(|symbol| symbol.name() == "pair").expect("it").clone();
    let range = symbol.address()..symbol.address() + symbol.size();
    let body = Body::decode(&program.image, std::slice::from_ref(&range), symbol.address());
    let counts = FxHashMap::from_iter([(program.at("pair_next"), 500)]);
    let mut pairs = PairCounts::default();
    FunctionSamples::new(&body, Machine::X86_64, &counts).candidates(program.at("pair_next"), &mut pairs);
    let rules = FusionRules::new(None, &pairs);
    let (pair, rule) = rules.iter().next().expect("a kind of pair");
    assert_eq!(pair.to_string(), "cmp reg,mem + jb");
    assert_eq!((rule.is_fused, rule.source), (true, RuleSource::Learnt { between: 0, behind: 500 }));
    assert!(rules.to_string().starts_with("1 kind of pair retired as one (1 learnt, 0 assumed)"), "{rules}");
}

#[test]
fn the_shift_of_a_counter_is_the_distance_at_which_loads_stand_out() {
    let Some(program) = Program::new("shift") else { return };
    let body = program.body("shift");
    let positions: Vec<u64> = body.instructions().iter().map(|instruction| instruction.address()).collect();
    let load = body.position(program.at("shift_load")).expect("a load");
    // most samples so far behind the load, and some everywhere
    let decide = |most: u64, behind: usize| {
        let mut counts: FxHashMap<u64, u64> = positions.iter().map(|address| (*address, 20)).collect();
        *counts.entry(positions[load + behind]).or_default() += most;
        let mut all = ShiftCounts::default();
        all.add(&shift::count(&body, Register(7), &counts));
        all.decide(3)
    };
    for behind in 0..4 {
        let found = decide(2000, behind);
        assert_eq!((found.event, usize::from(found.instructions)), (3, behind));
        assert!(found.learnt.is_some_and(|(loads, samples)| loads >= 2000 && samples >= loads), "{found:?}");
    }
    // too few, or evenly spread
    for found in [decide(40, 2), decide(0, 0)] {
        assert_eq!((found.instructions, found.learnt), (1, None));
    }
    assert_eq!(decide(0, 0).to_string(), "1 instruction, assumed: the recording does not tell");
    // what is two behind stands for what is in front by one more, in the same block
    assert_eq!(shift::as_if_one(&body, positions[load + 3], 3), Some(positions[load + 1]));
    assert_eq!(shift::as_if_one(&body, positions[0], 2), None);
}

#[test]
fn a_loop_that_begins_with_the_load_that_stalls_does_not_pass_for_a_longer_shift() {
    let Some(program) = Program::new("increments") else { return };
    let body = program.body("increments");
    // as recorded on a Zen 3: nearly all behind the load, the few others at the end of the loop
    let decide = |add: u64, sub: u64| {
        let counts = [(program.at("increments_add"), add), (program.at("increments_sub"), sub)];
        shift::count(&body, Register(7), &counts.into_iter().collect()).decide(0)
    };
    assert_eq!((decide(22097, 672).instructions, decide(22097, 672).learnt), (1, None));
    // where the samples at the end are the many, the counter is as late as that
    assert_eq!(decide(100, 2000).instructions, 3);
}

#[test]
fn a_division_gives_every_sample_once_and_each_part_its_share() {
    for sizes in [vec![1; 1000], vec![1000], vec![7, 1, 300, 2, 690], vec![u64::MAX / 2]] {
        let mut division = Division {
            parts: [(1, 0.5, 0.0), (2, 0.3, 0.0), (3, 0.2, 0.0)]
                .map(|(place, share, surplus)| (crate::index::PlaceId::of(place), share, surplus))
                .into(),
        };
        let mut sums: FxHashMap<usize, u64> = FxHashMap::default();
        for size in &sizes {
            let given = division.give(*size);
            assert_eq!(given.iter().map(|(_, samples)| samples).sum::<u64>(), *size);
            given.iter().for_each(|(place, samples)| *sums.entry(place.position()).or_default() += samples);
        }
        let all: u64 = sizes.iter().sum();
        for (place, share) in [(1, 0.5), (2, 0.3), (3, 0.2)] {
            let got = sums.get(&place).copied().unwrap_or(0) as f64;
            assert!((got - share * all as f64).abs() <= 2.0 + all as f64 * 1e-9, "{place}: {got} of {all}");
        }
    }
}
