//! The body of an HTTP request, as each call would read it. The first byte says which call.
#![no_main]

use kunci_api::{
    AcquireRequest, AddRequest, CancelRequest, FencingRejectionRequest, ForceReleaseRequest, InitRequest,
    PolicyChangeRequest, ReleaseRequest, RemoveRequest, RenewManyRequest, RenewRequest, ReplaceRequest,
    TransferRequest, parse, resource,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((call, body)) = bytes.split_first() else { return };
    match call {
        b'a' => drop(parse(body).map(|request: AcquireRequest| request.read())),
        b'c' => drop(parse(body).map(|request: CancelRequest| request.read())),
        b'f' => drop(parse(body).map(|request: ForceReleaseRequest| request.read())),
        b'm' => drop(parse(body).map(|request: RenewManyRequest| request.read())),
        b'n' => {
            let request = parse::<RenewRequest>(body);
            drop(request.map(|request| resource("k").and_then(|resource| request.read(resource))));
        }
        b'p' => drop(parse::<PolicyChangeRequest>(body).map(|change| change.replaces())),
        b'r' => drop(parse(body).map(|request: ReleaseRequest| request.read())),
        b't' => drop(parse(body).map(|request: FencingRejectionRequest| request.read())),
        b'1' => drop(parse::<InitRequest>(body)),
        b'2' => drop(parse::<AddRequest>(body)),
        b'3' => drop(parse::<ReplaceRequest>(body)),
        b'4' => drop(parse::<RemoveRequest>(body)),
        b'5' => drop(parse::<TransferRequest>(body)),
        _ => drop(std::str::from_utf8(body).map(|text| resource(text))),
    }
});
