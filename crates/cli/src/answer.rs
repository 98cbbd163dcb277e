//! What a server answered.
//!
//! Owns: reading fields from a body, what a refusal means for the exit code, and the fix that it ends with.
//! Never: sends, prints.

use crate::duration::human;
use crate::exit::Exit;
use http::StatusCode;
use serde_json::Value;

/// A status and a JSON body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The body.
    pub(crate) body: Value,
}

impl Answer {
    /// Whether the server did, or told, what it was asked.
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Whether the same request may do better in a moment: the node has no quorum, no leader or no room now.
    pub(crate) fn is_passing(&self) -> bool {
        self.status.is_server_error()
    }

    /// Whether the request may have been applied although it was refused.
    pub(crate) fn is_unknown(&self) -> bool {
        self.text("applied") == Some("unknown") || self.code() == "outcome_unknown"
    }

    /// The stable code of a refusal; empty when there is none.
    pub(crate) fn code(&self) -> &str {
        self.text("code").unwrap_or_default()
    }

    /// A text field.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        text(&self.body, field)
    }

    /// A number field.
    pub(crate) fn number(&self, field: &str) -> Option<u64> {
        number(&self.body, field)
    }

    /// How a verb ends that was refused like this.
    pub(crate) fn exit(&self) -> Exit {
        match self.status.as_u16() {
            _ if self.is_unknown() => Exit::Unknown,
            400 | 404 | 405 | 413 | 414 | 415 | 431 => Exit::Usage,
            500.. => Exit::Unavailable,
            _ => Exit::Refused,
        }
    }

    /// The refusal in one line: the fact, then the fix.
    pub(crate) fn refusal_text(&self) -> String {
        let said = ["detail", "message", "title"].iter().find_map(|field| self.text(field));
        let fact = said.map_or_else(|| self.fact(), str::to_owned);
        match self.fix() {
            // The server's text may end in the same advice.
            Some(fix) if !fact.contains(fix) => format!("{fact}; {fix}"),
            _ => fact,
        }
    }

    /// What the fields say, for a server that sent no sentence.
    fn fact(&self) -> String {
        let code = if self.code().is_empty() { self.status.as_str() } else { self.code() };
        let by = self.text("holder").map(|holder| format!(" by {holder}")).unwrap_or_default();
        let token =
            self.number("fencingToken").map(|token| format!(" under token {token}")).unwrap_or_default();
        let time =
            self.number("remainingMs").map(|ms| format!(" for another {}", human(ms))).unwrap_or_default();
        format!("{code}{by}{token}{time}")
    }

    fn fix(&self) -> Option<&'static str> {
        Some(match self.code() {
            "held" => "use --wait to queue for it",
            "lock_delay" => "use --wait to get it once the delay is over",
            "timed_out" => "use a longer --wait",
            "cancelled" => "ask again with a new request id",
            "superseded" => "a newer call of the same request id gets the answer",
            "request_id_reused" => "leave --request-id out to ask anew",
            "lease_ended" | "not_holder" => "stop the work that it protected, and acquire anew",
            "out_of_policy" => "use a value that the policy allows",
            "over_limit" => "try again in a moment",
            "no_quorum" | "no_leader" | "overloaded" => "try again in a moment",
            "already_formed" => "`kunci cluster status` shows its cluster",
            "not_ready" => "wait until `kunci cluster status` shows it healthy and caught up",
            "unknown_node" => "`kunci cluster status` lists the members",
            "storage_low" => "free disk space on the nodes",
            "outcome_unknown" => "repeat it with the same request id to find out",
            "compacted" => "leave --after out to follow from now on",
            "" if self.status == StatusCode::NOT_FOUND => "check that --url names a kunci server",
            _ => return None,
        })
    }
}

/// A text field of an object.
pub(crate) fn text<'a>(body: &'a Value, field: &str) -> Option<&'a str> {
    body.get(field).and_then(Value::as_str)
}

/// A number field of an object.
pub(crate) fn number(body: &Value, field: &str) -> Option<u64> {
    body.get(field).and_then(Value::as_u64)
}

/// Any field of an object as people read it.
pub(crate) fn shown(body: &Value, field: &str) -> Option<String> {
    match body.get(field)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A field in milliseconds as people read it.
pub(crate) fn shown_ms(body: &Value, field: &str) -> Option<String> {
    number(body, field).map(human)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(status: u16, body: Value) -> Answer {
        Answer { status: StatusCode::from_u16(status).unwrap(), body }
    }

    /// C90: a script can tell a refusal from a mistake in the arguments, from no quorum, from not knowing.
    #[test]
    fn each_kind_of_refusal_has_its_exit_code() {
        let exits = [
            (409, json!({"code": "held", "applied": "no"}), Exit::Refused),
            (422, json!({"code": "out_of_policy", "applied": "no"}), Exit::Refused),
            (429, json!({"code": "over_limit", "applied": "no"}), Exit::Refused),
            (400, json!({"code": "invalid", "applied": "no"}), Exit::Usage),
            (503, json!({"code": "no_quorum", "applied": "no"}), Exit::Unavailable),
            (503, json!({"code": "outcome_unknown", "applied": "unknown"}), Exit::Unknown),
        ];
        for (status, body, exit) in exits {
            assert_eq!(refusal(status, body.clone()).exit(), exit, "{status} {body}");
        }
    }

    #[test]
    fn a_refusal_ends_with_its_fix() {
        let held =
            refusal(409, json!({"code": "held", "holder": "w-7", "fencingToken": 8, "remainingMs": 1500}));
        assert_eq!(
            held.refusal_text(),
            "held by w-7 under token 8 for another 1.5s; use --wait to queue for it"
        );
    }
}
