//! From a line's bytes to a request.
//!
//! Owns: the grammar of requests. Never: fails without saying which field is at fault, or allocates for a field that
//! isn't coded.

use super::LINE_BYTES_MAX;
use super::fault::{BadLine, LineFault};
use super::fields::{Fields, ms, split, take_tag, text, whole};
use super::request::{Acquire, Hello, Line, Op, Request, Secret, Subject, WaitFor};
use crate::lease_id::parse_lease_id;
use crate::request::Proof;
use kunci_types::{FencingToken, InvalidText, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl};

impl Line {
    /// Reads a line without its `\n`; a `\r` before that is left out here.
    ///
    /// # Errors
    /// Says what is wrong, and as much as could be read for the answer to echo.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let at_fault = |why| BadLine { subject: None, tag: None, why };
        if bytes.len() > LINE_BYTES_MAX {
            return Err(at_fault(LineFault::TooLong));
        }
        if bytes.is_empty() {
            return Err(at_fault(LineFault::Empty));
        }
        let line = str::from_utf8(bytes).map_err(|_| at_fault(LineFault::NotUtf8))?;
        let (line, tag) = take_tag(line).map_err(at_fault)?;
        let at_fault = |why| BadLine { subject: None, tag, why };
        let (letter, rest) = split(line);
        let Some(op) = Op::of(letter) else {
            return Err(at_fault(if is_http(line) { LineFault::Http } else { LineFault::UnknownOp }));
        };
        let mut fields = Fields::new(op, rest);
        let key =
            if op.has_key() { Some(fields.expect("key").and_then(key).map_err(at_fault)?) } else { None };
        let subject = Subject { op, key: key.clone() };
        match request(op, key, fields) {
            Ok(request) => Ok(Self { request, tag }),
            Err(why) => Err(BadLine { subject: Some(subject), tag, why }),
        }
    }
}

/// Whether it is a request line of HTTP, or the header that is in every request.
fn is_http(line: &str) -> bool {
    let is_host = line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("host:"));
    is_host || line.rsplit_once(' ').is_some_and(|(_, version)| version.starts_with("HTTP/"))
}

fn request(op: Op, key: Option<ResourceName>, mut fields: Fields<'_>) -> Result<Request, LineFault> {
    let request = match (op, key) {
        (Op::Hello, _) => return hello(fields).map(Request::Hello),
        (Op::Acquire, Some(key)) => return acquire(key, fields).map(Request::Acquire),
        (Op::Cancel, Some(key)) => return cancel(key, fields),
        (Op::Ping, _) => Request::Ping,
        (Op::Renew, Some(key)) => {
            let lease_id = lease_id(fields.expect("lease_id")?)?;
            let ttl = fields.next().map(|raw| ms("lease_s", raw)).transpose()?.map(Ttl::from_ms);
            Request::Renew { key, lease_id, ttl }
        }
        (Op::Release, Some(key)) => Request::Release { key, proof: proof(fields.expect("lease_id")?)? },
        (Op::Status, Some(key)) => Request::Status { key },
        (op, None) => return Err(LineFault::Missing { op, field: "key" }),
    };
    fields.end()?;
    Ok(request)
}

fn hello(mut fields: Fields<'_>) -> Result<Hello, LineFault> {
    let version = whole("version", fields.expect("version")?)?;
    let version = u32::try_from(version).ok().filter(|version| *version > 0);
    let version = version.ok_or(LineFault::Number { field: "version" })?;
    let [token] = fields.named(["token"])?;
    let token = token.map(|raw| text("token", raw)).transpose()?.map(Secret::new);
    Ok(Hello { version, token })
}

fn cancel(key: ResourceName, mut fields: Fields<'_>) -> Result<Request, LineFault> {
    let request_id = request_id("request_id", fields.expect("request_id")?)?;
    let [given] = fields.named(["owner"])?;
    Ok(Request::Cancel { key, request_id, owner: given.map(owner).transpose()? })
}

fn acquire(key: ResourceName, mut fields: Fields<'_>) -> Result<Acquire, LineFault> {
    let ttl = Ttl::from_ms(ms("lease_s", fields.expect("lease_s")?)?);
    let wait = match fields.expect("wait_s")? {
        "try" => WaitFor::Once,
        raw => match ms("wait_s", raw)? {
            0 => WaitFor::AsLongAsAllowed,
            ms => WaitFor::UpToMs(ms),
        },
    };
    let [id, given, delay] = fields.named(["req", "owner", "delay"])?;
    let delay = delay.map(|raw| ms("delay", raw)).transpose()?.unwrap_or(0);
    Ok(Acquire {
        key,
        ttl,
        wait,
        request_id: id.map(|raw| request_id("req", raw)).transpose()?,
        owner: given.map(owner).transpose()?,
        lock_delay: LockDelay::from_ms(delay),
    })
}

fn at(field: &'static str) -> impl FnOnce(InvalidText) -> LineFault {
    move |cause| LineFault::Text { field, cause }
}

fn key(raw: &str) -> Result<ResourceName, LineFault> {
    ResourceName::parse(&text("key", raw)?).map_err(at("key"))
}

fn owner(raw: &str) -> Result<Owner, LineFault> {
    Owner::parse(&text("owner", raw)?).map_err(at("owner"))
}

fn request_id(field: &'static str, raw: &str) -> Result<RequestId, LineFault> {
    RequestId::parse(&text(field, raw)?).map_err(at(field))
}

fn lease_id(raw: &str) -> Result<LeaseId, LineFault> {
    parse_lease_id(&text("lease_id", raw)?).map_err(at("lease_id"))
}

fn proof(raw: &str) -> Result<Proof, LineFault> {
    let Some(named) = raw.strip_prefix("token=") else { return lease_id(raw).map(Proof::LeaseId) };
    let missing = LineFault::Missing { op: Op::Release, field: "owner" };
    let (number, name) = named.split_once(",owner=").ok_or(missing)?;
    let token = FencingToken::presented(whole("token", number)?)
        .map_err(|cause| LineFault::Token { field: "token", cause })?;
    Ok(Proof::OwnerToken { owner: owner(name)?, token })
}
