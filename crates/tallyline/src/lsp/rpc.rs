//! Messages of the protocol: JSON behind a head that says how long it is.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};

/// The most bytes of a message: a file of sources, with everything that has to be escaped in it.
const LIMIT: usize = 64 << 20;

/// The most bytes of a line of a head.
const HEAD_LIMIT: u64 = 4096;

/// The codes of errors, by JSON-RPC.
pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_REQUEST: i64 = -32600;

/// The protocol's own code of a request before `initialize`.
pub(super) const NOT_INITIALIZED: i64 = -32002;

/// The protocol's own code of a request that ended without an answer.
pub(super) const CANCELLED: i64 = -32800;

/// Reads a message, or why its text is no JSON, where the next one can be read nevertheless; none at the end of the
/// input.
///
/// # Errors
/// A head or a length that is no message's: what follows could not be told from it.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Option<serde_json::Result<Value>>> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = String::new();
        let read =
            Read::take(&mut *input, HEAD_LIMIT).read_line(&mut line).context("cannot read a message")?;
        match line.trim_end() {
            "" if read == 0 && is_first => return Ok(None),
            _ if read == 0 || !line.ends_with('\n') => bail!("a message ends in its head"),
            "" => break,
            field => {
                if let Some((name, value)) = field.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = Some(value.trim().parse::<usize>().context("Content-Length is not a number")?);
                }
            }
        }
        is_first = false;
    }
    let length = length.context("a message has no Content-Length")?;
    if length > LIMIT {
        bail!("a message of {length} bytes is longer than {LIMIT}");
    }
    let mut text = Vec::new();
    let read =
        Read::take(&mut *input, length as u64).read_to_end(&mut text).context("cannot read a message")?;
    if read < length {
        bail!("a message has {read} bytes, its head says {length}");
    }
    Ok(Some(serde_json::from_slice(&text)))
}

/// Writes a JSON message to the editor, after a header with its length.
pub(super) fn write(out: &mut dyn Write, message: &Value) -> Result<()> {
    let text = serde_json::to_vec(message)?;
    write!(out, "Content-Length: {}\r\n\r\n", text.len())?;
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// Returns the answer to a request.
pub(super) fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns the answer that a request cannot be met.
pub(super) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Returns a message that has no answer.
pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_the_other() {
        let mut text = Vec::new();
        write(&mut text, &json!({"id": 1, "x": "é"})).expect("memory");
        write(&mut text, &json!({"id": 2})).expect("memory");
        let mut input = &text[..];
        let mut next = || read(&mut input).expect("a message").expect("one").expect("JSON");
        assert_eq!(next()["x"], "é");
        assert_eq!(next()["id"], 2);
        assert!(read(&mut input).expect("the end").is_none());
    }

    #[test]
    fn a_text_that_is_no_json_leaves_the_next_message() {
        let deep = "[".repeat(100_000);
        for text in [&b"{bad}"[..], b"", b"\"\xff\"", deep.as_bytes()] {
            let mut all = format!("Content-Length: {}\r\n\r\n", text.len()).into_bytes();
            all.extend_from_slice(text);
            write(&mut all, &json!({"id": 1})).expect("memory");
            let mut input = &all[..];
            assert!(read(&mut input).expect("a head").expect("one").is_err());
            assert_eq!(read(&mut input).expect("a head").expect("one").expect("JSON")["id"], 1);
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "Content-Length: 99999999999\r\n\r\n{}",
            "Content-Length: -1\r\n\r\n{}",
            "Content-Length: 5\r\n\r\n{}",
            "Content-Length: 2",
            "Some-Field: x\r\n\r\n{}",
        ] {
            assert!(read(&mut text.as_bytes()).is_err(), "{text:?}");
        }
        let long = "x".repeat(10_000);
        assert!(read(&mut long.as_bytes()).is_err());
    }
}
