//! `tallyline doctor` on the machine that the tests run on.

mod common;

use common::{run, stdout};
use serde_json::Value;

#[test]
fn text_and_json_say_the_same_and_strict_tells_by_the_status() {
    let output = run(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let value: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let checks = value["checks"].as_array().expect("checks");
    let text = stdout(&run(&["doctor"]));
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(
        names,
        ["rseq", "hardware events", "permission", "BTF", "debuginfod", "QEMU", "plugin compiler"]
    );
    let mut works = true;
    for check in checks {
        let status = check["status"].as_str().expect("a status");
        assert_eq!(check["advice"].is_null(), status == "works", "{check}");
        works &= status == "works";
        let line = format!("{status:<8} {:<16} ", check["name"].as_str().expect("a name"));
        assert!(text.contains(&line), "{line}: {text}");
    }
    let strict = run(&["doctor", "--strict"]);
    assert_eq!(strict.status.code(), Some(i32::from(!works)), "{strict:?}");
}
