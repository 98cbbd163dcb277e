//! What an HTTP request says of its lock, and how a refusal is answered.
//!
//! Owns: the headers `X-Kunci-Resource` and `X-Kunci-Token`, the codes, the form of a problem. Never: waits.

use crate::gate::{AdmitError, Rejected};
use crate::passage::PassError;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use kunci_types::{FencingToken, ResourceName};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The resource that a write belongs to: percent-encoding is decoded, so `orders/42` and `orders%2F42` are the same.
pub const RESOURCE: HeaderName = HeaderName::from_static("x-kunci-resource");
/// The fencing token of the lease under which it is made, in decimal digits.
pub const TOKEN: HeaderName = HeaderName::from_static("x-kunci-token");

/// Whether a request by this method changes nothing, and so needs no token.
pub fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// What a write says of its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What it belongs to.
    pub resource: ResourceName,
    /// Under which token.
    pub token: FencingToken,
}

impl Claim {
    /// Reads both headers.
    ///
    /// # Errors
    /// A [`Problem`]: 428 when one is missing, 400 when one can't be read.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let resource =
            only(headers, &RESOURCE, "the name of the resource that was locked, such as orders/42")?;
        let token = only(headers, &TOKEN, "the fencing token that came with the grant")?;
        Ok(Self { resource: resource_of(resource)?, token: token_of(token)? })
    }
}

/// The value of a header that must be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName, what: &str) -> Result<&'a [u8], Problem> {
    let mut values = headers.get_all(name).iter();
    let shown = shown(name);
    let Some(value) = values.next() else {
        let detail = format!("a write here needs {shown}: {what}; acquire the lock and send both headers");
        let title = "a write here needs a fencing token";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "token_required", title, detail));
    };
    if values.next().is_some() {
        return Err(malformed(format!("{shown} is there more than once: send it once")));
    }
    Ok(value.as_bytes())
}

fn shown(name: &HeaderName) -> &'static str {
    if *name == TOKEN { "X-Kunci-Token" } else { "X-Kunci-Resource" }
}

fn malformed(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid", "the request's headers can't be used", detail)
}

fn resource_of(value: &[u8]) -> Result<ResourceName, Problem> {
    let decoded = decoded(value).ok_or_else(|| {
        malformed(
            "X-Kunci-Resource has a % that isn't followed by two hex digits: send a % as %25".to_owned(),
        )
    })?;
    let text = std::str::from_utf8(&decoded).map_err(|error| {
        malformed(format!("X-Kunci-Resource isn't UTF-8 at byte {} of the name", error.valid_up_to()))
    })?;
    ResourceName::parse(text).map_err(|fault| malformed(format!("X-Kunci-Resource: {fault}")))
}

/// Decodes percent-encoding; `None` where it is broken.
pub(crate) fn decoded(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !text.contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_first_chunk::<2>()?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = after;
    }
    Some(Cow::Owned(bytes))
}

/// Digits and nothing else: whatever another program could read differently is refused.
fn token_of(value: &[u8]) -> Result<FencingToken, Problem> {
    let is_plain =
        !value.is_empty() && value.len() <= 16 && value.iter().all(u8::is_ascii_digit) && value[0] != b'0';
    let number = is_plain.then(|| std::str::from_utf8(value).ok()?.parse().ok()).flatten();
    let token = number.and_then(|number| FencingToken::presented(number).ok());
    token.ok_or_else(|| {
        let start: String = String::from_utf8_lossy(value).chars().take(24).collect();
        malformed(format!(
            "X-Kunci-Token is {start:?}, expected 1 to 9007199254740991 in decimal digits, as the grant had it"
        ))
    })
}

/// A refusal on its way out: `application/problem+json`, in the form that kunci's own refusals have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    fields: Map<String, Value>,
    retry_after_ms: Option<u64>,
}

impl Problem {
    /// A refusal of something that didn't happen, and won't.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let mut problem = Self { status, code, fields: Map::new(), retry_after_ms: None };
        problem.set("type", format!("urn:kunci:error:{code}"));
        problem.set("title", title);
        problem.set("status", status.as_u16());
        problem.set("code", code);
        problem.set("detail", detail.into());
        problem.set("applied", "no");
        problem
    }

    /// It may have happened.
    #[cfg(feature = "proxy")]
    pub(crate) fn unknown(mut self) -> Self {
        self.set("applied", "unknown");
        self
    }

    pub(crate) fn retry_after(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self.set("retryAfterMs", ms);
        self
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    fn about(mut self, resource: &ResourceName, token: FencingToken, current: FencingToken) -> Self {
        self.set("resource", resource.as_str());
        self.set("token", token.get());
        self.set("current", current.get());
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The response.
    pub fn response(&self) -> Response<Full<Bytes>> {
        let body = json!(self.fields).to_string();
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(ms) = self.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000).max(1)));
        }
        response
    }
}

impl From<&Rejected> for Problem {
    fn from(rejected: &Rejected) -> Self {
        let title = "a newer fencing token was admitted";
        Self::new(StatusCode::CONFLICT, "token_rejected", title, rejected.to_string()).about(
            &rejected.resource,
            rejected.found,
            rejected.kept,
        )
    }
}

impl From<&PassError> for Problem {
    fn from(error: &PassError) -> Self {
        let unavailable =
            |code, title| Self::new(StatusCode::SERVICE_UNAVAILABLE, code, title, error.to_string());
        match error {
            PassError::Gate(AdmitError::Rejected(rejected)) => rejected.into(),
            PassError::Gate(AdmitError::Full { .. }) => unavailable("gate_full", "the gate is full"),
            PassError::Gate(AdmitError::Busy { .. }) => {
                unavailable("overloaded", "the gate is overloaded").retry_after(1_000)
            }
            PassError::Gate(AdmitError::NotKept { .. }) => {
                unavailable("gate_disk", "the gate can't keep the token").retry_after(5_000)
            }
            PassError::Gate(AdmitError::Stopped { .. }) => {
                unavailable("gate_stopped", "the gate has stopped")
            }
            PassError::Undrained { resource, found, older, retry_after_ms, .. } => {
                let mut problem = unavailable("undrained", "an older write hasn't ended for certain")
                    .retry_after(*retry_after_ms);
                problem.set("resource", resource.as_str());
                problem.set("token", found.get());
                problem.set("older", older.get());
                problem
            }
        }
    }
}

/// Says in the log that a request wasn't let through.
pub(crate) fn log(error: &PassError) {
    match error {
        PassError::Gate(AdmitError::Rejected(Rejected { resource, found, kept })) => {
            tracing::warn!(%resource, token = %found, current = %kept, "a late write was rejected");
        }
        PassError::Undrained { resource, found, older, is_lost, waited_ms, .. } => {
            tracing::warn!(
                %resource, token = %found, %older, is_lost, waited_ms,
                "a write was put off: an older one hasn't ended for certain"
            );
        }
        PassError::Gate(error) => tracing::error!(%error, "a write was refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(headers: &[(&str, &[u8])]) -> Result<(String, u64), (u16, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let claim = Claim::of(&map);
        claim.map(|claim| (claim.resource.as_str().to_owned(), claim.token.get())).map_err(|problem| {
            (problem.status.as_u16(), problem.fields["detail"].as_str().unwrap().to_owned())
        })
    }

    #[test]
    fn both_headers_are_read() {
        let read =
            |resource: &[u8]| claim(&[("x-kunci-resource", resource), ("X-Kunci-Token", b"42")]).unwrap();
        assert_eq!(read(b"orders/42"), ("orders/42".to_owned(), 42));
        assert_eq!(read(b"orders%2f42").0, "orders/42");
        assert_eq!(read("é".as_bytes()).0, "é");
        assert_eq!(read(b"%C3%A9%25").0, "é%");
    }

    #[test]
    fn a_missing_header_is_named_with_what_belongs_in_it() {
        let (status, detail) = claim(&[("x-kunci-token", b"1")]).unwrap_err();
        assert_eq!(status, 428);
        assert!(detail.starts_with("a write here needs X-Kunci-Resource: the name of"), "{detail}");
        let (status, detail) = claim(&[("x-kunci-resource", b"r")]).unwrap_err();
        assert_eq!(status, 428);
        assert!(detail.starts_with("a write here needs X-Kunci-Token: "), "{detail}");
    }

    #[test]
    fn whatever_could_be_read_in_two_ways_is_refused() {
        let token = |token: &[u8]| claim(&[("x-kunci-resource", b"r"), ("x-kunci-token", token)]);
        for bad in [
            "",
            "0",
            "-1",
            "+1",
            "07",
            "1.0",
            "1e3",
            "0x10",
            "1,2",
            "1 2",
            "9007199254740992",
            "99999999999999999999",
            "18446744073709551617",
            "٣",
            "1\u{a0}",
        ] {
            let (status, detail) = token(bad.as_bytes()).unwrap_err();
            assert_eq!(status, 400, "{bad}");
            assert!(detail.contains("in decimal digits"), "{detail}");
        }
        assert_eq!(token(b"9007199254740991").unwrap().1, (1 << 53) - 1);
        let resource = |resource: &[u8]| claim(&[("x-kunci-resource", resource), ("x-kunci-token", b"1")]);
        for bad in [
            &b"%"[..],
            b"%4",
            b"%zz",
            b"%+1",
            b"\xff",
            b"%FF",
            b"%00",
            b"a%0A",
            b"%20a",
            b"e%CC%81",
            &[b'a'; 257],
        ] {
            assert_eq!(resource(bad).unwrap_err().0, 400, "{bad:?}");
        }
        let twice: &[(&str, &[u8])] =
            &[("x-kunci-resource", b"r"), ("x-kunci-token", b"1"), ("x-kunci-token", b"1")];
        assert!(claim(twice).unwrap_err().1.contains("more than once"));
    }
}
