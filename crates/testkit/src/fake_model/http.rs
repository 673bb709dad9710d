//! As much of HTTP/1.1 as agents need.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

/// Longest line of a head, and of a chunk's size.
const LONGEST_LINE: u64 = 64 << 10;

/// Largest body that is taken.
const LARGEST_BODY: u64 = 64 << 20;

/// A request off the wire.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status with JSON; the connection stays open.
    Whole { code: u16, headers: Vec<(String, String)>, body: String },
    /// Server-sent events; the connection is closed behind the last.
    Events(String),
    /// Nothing, for ever.
    Hang,
    /// Nothing, and the connection is closed.
    Drop,
}

impl Reply {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self::Whole { code, headers: Vec::new(), body: body.to_string() }
    }

    /// Its first half.
    pub(super) fn cut(self) -> Self {
        let half = |text: String| {
            let at = text.len() / 2;
            text.char_indices().take_while(|(i, _)| *i < at).map(|(_, c)| c).collect()
        };
        match self {
            Self::Whole { code, headers, body } => Self::Whole { code, headers, body: half(body) },
            Self::Events(text) => Self::Events(half(text)),
            Self::Hang | Self::Drop => self,
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if reader.take(LONGEST_LINE).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(broken("a line without an end"));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The next request; `None` when the client has closed.
pub(super) fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Option<Received>> {
    let Some(first) = line(reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(broken("no request line"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let field = line(reader)?.ok_or_else(|| broken("a head without an end"))?;
        if field.is_empty() {
            break;
        }
        let (name, value) = field.split_once(':').ok_or_else(|| broken("a header without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
    if header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if header("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked")) {
        chunks(reader)?
    } else {
        let length = header("content-length").map_or(Ok(0), str::parse::<u64>);
        exactly(reader, length.map_err(|_| broken("a length that is no number"))?)?
    };
    Ok(Some(Received { method, path, headers, body }))
}

fn exactly(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > LARGEST_BODY {
        return Err(broken("a body that is too large"));
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok(body) } else { Err(broken("a body that is cut")) }
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?.ok_or_else(|| broken("chunks without an end"))?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| broken("a chunk without a size"))?;
        if body.len() as u64 + size > LARGEST_BODY {
            return Err(broken("a body that is too large"));
        }
        if size == 0 {
            // Trailers end with an empty line.
            while line(reader)?.is_some_and(|trailer| !trailer.is_empty()) {}
            return Ok(body);
        }
        body.extend(exactly(reader, size)?);
        line(reader)?;
    }
}

/// Writes a reply; whether the connection stays open.
pub(super) fn write(writer: &mut impl Write, method: &str, reply: &Reply) -> io::Result<bool> {
    match reply {
        Reply::Whole { code, headers, body } => {
            let fields: String =
                headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
            let head = format!(
                "HTTP/1.1 {code} {}\r\ncontent-type: application/json\r\n{fields}content-length: {}\r\n\r\n",
                phrase(*code),
                body.len()
            );
            writer.write_all(head.as_bytes())?;
            if method != "HEAD" {
                writer.write_all(body.as_bytes())?;
            }
            writer.flush()?;
            Ok(true)
        }
        Reply::Events(text) => {
            writer.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )?;
            writer.write_all(text.as_bytes())?;
            writer.flush()?;
            Ok(false)
        }
        Reply::Hang | Reply::Drop => Ok(false),
    }
}

const fn phrase(code: u16) -> &'static str {
    match code {
        200..300 => "OK",
        300..400 => "Elsewhere",
        400..500 => "Refused",
        _ => "Failed",
    }
}
