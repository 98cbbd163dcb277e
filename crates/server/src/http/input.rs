//! From a request's bytes to what was asked.
//!
//! Owns: the resource in the path, the body's type, size and time. Never: a field of a body.

use super::answer::Failure;
use super::door::{From, Gone};
use super::front::Front;
use super::query::decode;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kunci_api::{Code, Invalid, Problem, parse, resource};
use kunci_process::timeout;
use kunci_types::ResourceName;
use serde::de::DeserializeOwned;
use std::convert::Infallible;

/// The resource that the path names: its second segment, percent-encoded.
pub(super) struct Resource(pub(super) ResourceName);

impl FromRequestParts<Front> for Resource {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<Self, Failure> {
        let segment = parts.uri.path().split('/').nth(2).unwrap_or_default();
        let name = decode("resource", segment).and_then(|text| resource(&text));
        Ok(Self(name.map_err(|invalid| front.refuse(invalid))?))
    }
}

impl<S: Sync> FromRequestParts<S> for Gone {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

impl<S: Sync> FromRequestParts<S> for From {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

impl Front {
    /// Reads a JSON body of at most the usual size.
    pub(super) async fn json<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failure> {
        self.json_up_to(request, self.limits.body_bytes_max).await
    }

    /// Reads a JSON body of at most `bytes_max`.
    pub(super) async fn json_up_to<T: DeserializeOwned>(
        &self,
        request: Request,
        bytes_max: usize,
    ) -> Result<T, Failure> {
        let (parts, body) = request.into_parts();
        let bytes = self.read(&parts, body, bytes_max).await?;
        if !bytes.is_empty() {
            undeclared(&parts).map_or(Ok(()), |problem| Err(self.refuse(problem)))?;
        }
        parse(&bytes).map_err(|invalid: Invalid| self.refuse(invalid))
    }

    /// Reads a body of at most `bytes_max`, within its time.
    pub(super) async fn read(&self, parts: &Parts, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
        let too_large = || {
            let detail = format!("the body is too large: expected at most {bytes_max} bytes");
            self.refuse(Problem::new(Code::TooLarge, detail))
        };
        let declared = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if declared
            .and_then(|length| length.parse().ok())
            .is_some_and(|length: u64| length > bytes_max as u64)
        {
            return Err(too_large());
        }
        let within = self.limits.body_within;
        match timeout(within, Limited::new(body, bytes_max).collect()).await {
            Ok(Ok(read)) => Ok(read.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(self.refuse(Problem::new(Code::Invalid, "the body broke off"))),
            Err(_) => {
                let detail = format!("the body didn't arrive within {} ms", within.as_millis());
                Err(self.refuse(Problem::new(Code::TooSlow, detail)))
            }
        }
    }
}

/// A body must be declared as JSON. Whoever looks at a web page of another origin lends it every request that
/// needs no permission, and those can't be declared so.
fn undeclared(parts: &Parts) -> Option<Problem> {
    let declared = parts.headers.get(CONTENT_TYPE).and_then(|declared| declared.to_str().ok());
    let essence = declared.map(|declared| declared.split(';').next().unwrap_or_default().trim());
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case("application/json") => None,
        Some(other) => Some(Problem::new(
            Code::UnsupportedMediaType,
            format!("the body is declared as `{other}`: send the header Content-Type: application/json"),
        )),
        None => Some(Problem::new(
            Code::UnsupportedMediaType,
            "the body isn't declared: send the header Content-Type: application/json",
        )),
    }
}
