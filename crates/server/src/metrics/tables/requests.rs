//! What clients asked for, and what became of it.

use crate::metrics::row::{Row, Section, Unit, label};

pub(super) const SECTION: Section = Section { title: "Requests", rows: ROWS, below: BELOW };

const BELOW: &str = "
`op` is `acquire`, `renew`, `renew_many` (one HTTP call about many leases), `release`, `cancel`, `force_release` or `read` (status, queue,
history, lists, policy). `outcome` is one of:

| outcome | of | meaning |
| --- | --- | --- |
| `granted` | acquire | The caller holds the resource. |
| `queued` | acquire | HTTP 202: it waits, and the client calls again. |
| `done` | all others | It took effect, or was read. |
| `refused` | acquire | `held` or `lock_delay`: it didn't want to wait. |
| `timed_out` | acquire | Its wait was over. |
| `cancelled` | acquire | `cancelled` or `superseded`. |
| `lost` | all | `lease_ended` or `not_holder`: the caller doesn't hold the lease (any more). |
| `limited` | all | `over_limit`, `overloaded` or `storage_low`: too much of something. |
| `unavailable` | all | `no_leader`, `no_quorum` or `not_enabled`. |
| `moved` | all, native | The client was sent to the node that leads; it asks there. |
| `rejected` | all | Any other refusal: the request was wrong. |
| `unknown` | all | `outcome_unknown`: it may have taken effect. |
| `gone` | acquire | The client went away before its answer. |
";

const ROWS: &[Row] = &[
    Row::histogram(
        "kunci_request_duration_seconds",
        &[label("door", "`http`, `native`"), label("op", ""), label("outcome", "")],
        "From a request's arrival to its answer; for an acquire that queues, with its wait.",
        |from, out| {
            for (door, measures) in from.doors() {
                for (op, outcome, took) in measures.requests.shown() {
                    let labels = [("door", door), ("op", op.name()), ("outcome", outcome.name())];
                    out.spread(&labels, Unit::Micros, took);
                }
            }
        },
    ),
    Row::counter(
        "kunci_refusals_total",
        &[label("code", "")],
        "Refusals that this node gave, by their code in [errors.md](errors.md).",
        |from, out| {
            let refusals = from.member.iter().flat_map(|member| member.service.counters().refusals());
            refusals.for_each(|(code, count)| out.under(&[("code", code.as_str())], count));
        },
    ),
    Row::counter(
        "kunci_limits_hit_total",
        &[label("limit", "")],
        "Refusals because of a limit: of the policy by its name there, or of this node: `batcher_queue`, `storage`, \
         `event_streams`, `http_connections`, `native_connections`, `native_unread_answers`, `native_bad_lines`.",
        |from, out| {
            if let Some(member) = &from.member {
                let counters = member.service.counters();
                counters.limits().for_each(|(limit, count)| out.under(&[("limit", limit)], count));
                out.under(&[("limit", "batcher_queue")], member.service.measures().batcher_full.get());
            }
            out.under(&[("limit", "event_streams")], from.more.streams_too_many);
            out.under(&[("limit", "http_connections")], from.http.too_many.get());
            if let Some(native) = from.native {
                out.under(&[("limit", "native_connections")], native.too_many.get());
                out.under(&[("limit", "native_unread_answers")], native.unread.get());
                out.under(&[("limit", "native_bad_lines")], native.bad_lines.get());
            }
        },
    ),
    Row::counter(
        "kunci_fencing_rejections_total",
        &[],
        "Stale tokens that protected resources reported to this node.",
        |from, out| {
            from.member.iter().for_each(|member| out.one(member.service.counters().fencing_rejections()));
        },
    ),
    Row::gauge(
        "kunci_waiting_calls",
        &[],
        "Acquires that wait on this node for their answer.",
        |from, out| {
            let waiting = from.member.iter().map(|member| member.service.waiting_calls());
            waiting.for_each(|calls| out.one(u64::try_from(calls).unwrap_or(u64::MAX)));
        },
    ),
    Row::counter(
        "kunci_http_answers_total",
        &[label("class", "`1xx` to `5xx`")],
        "HTTP answers by class of status.",
        |from, out| {
            for (class, count) in &from.more.answers {
                out.under(&[("class", &format!("{class}xx"))], *count);
            }
        },
    ),
    Row::counter(
        "kunci_http_passed_on_total",
        &[],
        "Calls passed on to the leader, tries after a change of leader included.",
        |from, out| out.one(from.more.passed_on),
    ),
    Row::gauge("kunci_event_streams", &[], "Open streams of events.", |from, out| {
        out.one(u64::try_from(from.more.streams).unwrap_or(u64::MAX));
    }),
];
