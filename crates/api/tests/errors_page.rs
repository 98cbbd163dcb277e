//! The committed page of error codes says what the code says. `KUNCI_BLESS=1` writes it anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kunci_api::{Applied, Code};
use std::fmt::Write as _;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");

const HEAD: &str = "\
# Errors

Every refusal over HTTP has one form, `application/problem+json`, with the fields of this example where they apply:

```json
{
  \"type\": \"urn:kunci:error:held\",
  \"title\": \"the resource is held\",
  \"status\": 409,
  \"code\": \"held\",
  \"detail\": \"held by worker-3 under fencing token 41 for another 12034 ms\",
  \"applied\": \"no\",
  \"revision\": 57,
  \"acquired\": false,
  \"holder\": \"worker-3\",
  \"fencingToken\": 41,
  \"remainingMs\": 12034,
  \"queueLength\": 2,
  \"requestId\": \"q8Jb0c1yT5mWn3pR7sVx2A\"
}
```

Programs go by `code`; it never changes its meaning. `title` and `detail` are for people and may be reworded. Two fields
answer the two questions that a caller has:

- **Did it happen?** `applied`: `no`, it did not and will not; `unknown`, it may have. Whoever gets no answer at all, a
  broken connection or a proxy's page, knows as little as after `unknown`.
- **May I retry?** With the same request id, always: a request has one effect, however often it is sent. With a new one
  only after `applied: no`, or there may be two. Refusals that pass by themselves (429, 503) say when: `Retry-After` in
  whole seconds, `retryAfterMs` in milliseconds.

`repeated: true` says that the answer comes from the record of an earlier one. `field` and `at` name the field at fault
and the byte in it; `minMs`, `maxMs`, `min`, `max` and `limit` what would have been allowed. [http.md](http.md) has the
calls. A few answers come from below the calls and have no body: 400 for what isn't HTTP, 431 for headers over their
limit; and a connection that sends half a request is closed after its time.

This page is made from the code: `KUNCI_BLESS=1 cargo test -p kunci-api` writes it, and the test fails when it differs.

| code | status | applied | meaning | what to do |
| --- | --- | --- | --- | --- |
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in Code::ALL {
        let applied = match code.applied() {
            Applied::No => "no",
            Applied::Unknown => "unknown",
        };
        let meaning = code.meaning().trim();
        writeln!(
            page,
            "| `{}` | {} | {applied} | {meaning} | {} |",
            code.as_str(),
            code.status(),
            code.advice()
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_of_errors_lists_every_code() {
    if std::env::var_os("KUNCI_BLESS").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let committed = std::fs::read_to_string(PAGE).unwrap();
    assert!(committed == page(), "docs/errors.md differs from the code: write it with KUNCI_BLESS=1");
}
