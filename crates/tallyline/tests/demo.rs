//! The demos from outside: what they print and write, and how they end. Never how fast anything is.

mod common;

use common::{folder, run, run_in, stderr, stdout, tallyline};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

/// Checks the exit status and parses the output of `--json`.
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_else(|| panic!("no {name}"))
}

/// Returns whether a folder holds these files and nothing else: no half a page either.
fn holds(folder: &Path, names: &[&str]) -> bool {
    let entries = fs::read_dir(folder).expect("folder");
    let mut found: Vec<String> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    found == names
}

#[test]
fn json_has_what_was_measured_and_every_count() {
    let folder = folder("demo-json");
    let output = run_in(&folder, &["demo", "counters", "--quick", "--json"]);
    let found = json(&output);
    assert!(holds(&folder, &[]), "with --json no page unless asked for");
    assert_eq!((found["schema"].as_u64(), found["demo"].as_str()), (Some(1), Some("packets")));
    assert!(found["machine"]["cpus"].as_u64().is_some_and(|cpus| cpus > 0));
    assert!(found["mode"].is_string() && found["page"].is_null());

    let threads = list(&found, "threads");
    let cases = list(&found, "cases");
    assert_eq!(cases.len(), 5 * threads.len());
    for case in cases {
        assert_eq!(case["unit"], "ns/packet", "{case}");
        let figure = |name: &str| case[name].as_f64().expect("figure");
        assert!(
            0.0 < figure("min") && figure("min") <= figure("median") && figure("median") <= figure("max")
        );
        assert!(case["rounds"].as_u64().is_some_and(|rounds| rounds > 1));
        assert!(figure("packets_per_second") > 0.0);
    }
    let ratios = list(&found, "ratios");
    assert_eq!(ratios.len(), 3 * threads.len());
    assert!(ratios.iter().all(|ratio| ratio["under"] == "statctr/one-commit" && ratio["median"].is_f64()));

    assert_eq!(found["exact"], true, "{found}");
    let exactness = list(&found, "exactness");
    assert_eq!(exactness.len(), 4);
    for check in exactness {
        assert!(check["packets"].as_u64().is_some_and(|packets| packets > 0), "{check}");
        assert_eq!((&check["wrong"], &check["lost"], &check["doubled"]), (&0.into(), &0.into(), &0.into()));
    }
    for seen in list(&found, "watched") {
        assert_eq!(seen["went_down"], 0, "{seen}");
        assert!(seen["reads"].as_u64().is_some_and(|reads| reads > 0), "{seen}");
    }

    let reads = list(&found, "reads");
    let counted: Vec<u64> = reads
        .iter()
        .filter(|read| read["made_up"] == true && read["what"] == "group")
        .map(|read| read["cpus"].as_u64().expect("CPUs"))
        .collect();
    assert!(counted.contains(&32) && counted.last() == Some(&192), "{counted:?}");
    assert!(reads.iter().any(|read| read["case"] == "shared-atomic" && read["what"] == "counter"));
    assert_eq!(found["memory"]["bytes_per_counter_per_cpu"], 8);
    assert!(found["memory_of_many"]["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert!(found["headline"].as_str().is_some_and(|line| line.contains("no count was lost in")), "{found}");
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let folder = folder("demo-page");
    let output = run_in(&folder, &["demo", "counters", "--quick"]);
    assert!(output.status.success(), "{output:?}");
    assert!(holds(&folder, &["tallyline-counters.html"]));
    let page = fs::read_to_string(folder.join("tallyline-counters.html")).expect("page");
    for outside in ["http://", "https://", "//cdn", "src=", "@import", "url(", "<script", "{{", "}}", "NaN"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    let links: Vec<&str> = page.match_indices("href=").map(|(at, _)| &page[at..at + 13]).collect();
    assert_eq!(links, ["href=\"data:,\""], "the icon that is none");

    // readable without eyes, colours and light
    let plots = page.matches("<svg ").count();
    assert!(plots >= 3);
    assert_eq!(page.matches("</title>\n<desc ").count(), plots);
    assert_eq!(page.matches("role=\"img\"").count(), plots);
    assert_eq!(page.matches("<table>").count(), page.matches("<caption>").count());
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
    assert!(page.contains("<html lang=\"en\">") && page.contains("made-up machine"));
    // every tag that is opened is closed
    for tag in
        ["svg", "table", "tr", "td", "th", "p", "ul", "li", "figure", "figcaption", "main", "div", "h2"]
    {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn the_table_says_where_the_page_is_and_ends_with_the_sentence() {
    let folder = folder("demo-table");
    let output = run_in(&folder, &["demo", "counters", "--quick", "--threads", "1", "-o", "own.html"]);
    assert!(output.status.success(), "{output:?}");
    assert!(holds(&folder, &["own.html"]));
    let text = stdout(&output);
    assert!(!text.contains('\x1b'), "colours in a pipe: {text}");
    assert!(text.contains("own.html"), "{text}");
    let last = text.lines().last().expect("text");
    assert!(last.starts_with("On this machine, counting a packet costs"), "{last}");
    assert!(last.contains("at 1 thread:") && last.ends_with(" packets."), "{last}");
    // sentences are whole lines where there is no terminal, tables fit a narrow one
    let tables = text.lines().filter(|line| line.starts_with("  "));
    assert!(tables.clone().count() > 20 && tables.clone().all(|line| line.chars().count() <= 80), "{text}");

    let silent =
        run_in(&folder, &["--color", "always", "demo", "counters", "--quick", "--threads", "1", "--no-html"]);
    assert!(stdout(&silent).contains("\x1b["));
    assert!(holds(&folder, &["own.html"]));
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let output = run(&["demo", "counters", "-o", "/nowhere/at/all/page.html"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = stderr(&output);
    assert!(complaint.contains("/nowhere/at/all/page.html") && complaint.contains("-o"), "{complaint}");
    assert!(output.stdout.is_empty());
}

#[test]
fn bad_arguments_end_with_2_and_say_what_to_do() {
    for (args, hint) in [
        (&["--threads", "0"][..], "--threads"),
        (&["--threads", "many"], "--threads"),
        (&["--threads", "60000"], "or less"),
        (&["--seconds", "0"], "above 0"),
        (&["--quick", "--seconds", "3"], "--seconds"),
        (&["--no-html", "-o", "page.html"], "--output"),
        (&["extra"], "extra"),
    ] {
        let output = run(&[&["demo", "counters"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn without_rseq_it_says_so_and_loses_nothing() {
    let mut command = tallyline();
    command.args(["demo", "counters", "--quick", "--threads", "1", "--json"]);
    let settings = [("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("STATCTR_REGISTER", "0")];
    let output = command.envs(settings).output().expect("the program runs");
    let found = json(&output);
    assert_eq!(found["exact"], true);
    if found["mode"] != "rseq" {
        let notes = list(&found, "notes");
        assert!(
            notes.iter().any(|note| note.as_str().is_some_and(|note| note
                .contains("a word per CPU atomically")
                || note.contains("one possible CPU"))),
            "{notes:?}"
        );
        assert!(list(&found, "watched").iter().all(|seen| seen["pairs_promised"] == false));
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt;

    let folder = folder("demo-ctrl-c");
    fs::write(folder.join("page.html"), "older").expect("file");
    let child = tallyline()
        .args(["demo", "counters", "--seconds", "60", "-o", "page.html"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // when the new page has its place, the program already listens
    while holds(&folder, &["page.html"]) {
        std::thread::yield_now();
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("nothing was written"), "{output:?}");
    assert!(output.stdout.is_empty());
    assert!(holds(&folder, &["page.html"]));
    assert_eq!(fs::read_to_string(folder.join("page.html")).expect("still there"), "older");
}

#[test]
fn a_checkout_of_this_project_ignores_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join(".git").exists() {
        eprintln!("skipped: not a checkout");
        return;
    }
    let git = std::process::Command::new("git")
        .args(["check-ignore", "-v", "tallyline-counters.html"])
        .current_dir(&root)
        .output();
    match git {
        Ok(found) => assert!(stdout(&found).starts_with(".gitignore:"), "{found:?}"),
        Err(error) => eprintln!("skipped: git: {error}"),
    }
}

#[test]
fn the_loop_ends_with_a_measured_speed_up_and_leaves_its_page_alone() {
    let has_compiler = std::process::Command::new("rustc").arg("--version").output().is_ok();
    if !has_compiler || !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: needs rustc, and x86-64");
        return;
    }
    let (folder, scratch) = (folder("demo-loop"), common::folder("demo-loop-scratch"));
    let mut program = tallyline();
    // the folder for temporary files is looked at afterwards; without QEMU on the path the demo goes on
    program.args(["demo", "--quick"]).current_dir(&folder).env("TMPDIR", &scratch);
    let output = program.output().expect("the demo runs");
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for step in ["1 record", "2 find", "3 advise", "4 apply", "5 verify", "6 measure"] {
        assert!(text.contains(&format!("\n{step}")), "{step}: {text}");
    }
    assert!(text.contains("gateway.rs: +#[repr(align(64))]"), "{text}");
    assert!(text.contains("WorkerStats has 64 bytes, as promised"), "{text}");
    assert!(text.contains(" times the speed (middle half "), "{text}");
    assert!(holds(&folder, &["tallyline-demo.html"]), "its page, and nothing else");
    assert!(holds(&scratch, &[]), "nothing is left in the folder of temporary files");
    let page = fs::read_to_string(folder.join("tallyline-demo.html")).expect("page");
    for outside in ["http://", "https://", "src=", "@import", "url(", "<script", "NaN"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    for tag in ["table", "tr", "td", "th", "p", "h2", "div", "pre", "main", "body", "html"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn without_a_compiler_the_loop_says_what_to_do() {
    let folder = folder("demo-no-compiler");
    let mut program = tallyline();
    let output =
        program.args(["demo", "--quick"]).current_dir(&folder).env("RUSTC", "/nowhere/rustc").output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("RUSTC names another compiler"), "{}", stderr(&output));
    assert!(holds(&folder, &[]), "no half a page");
}

#[test]
fn arguments_of_the_comparison_are_not_the_loops() {
    let output = run(&["demo", "--threads", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--threads"), "{}", stderr(&output));
}
