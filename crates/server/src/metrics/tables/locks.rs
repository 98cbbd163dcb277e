//! Leases, queues and what becomes of them.

use crate::metrics::row::{Row, Section, Unit, label};

pub(super) const SECTION: Section = Section { title: "Locks", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::gauge("kunci_leases", &[], "Leases that are current: held locks.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.status.counts.held));
    }),
    Row::gauge("kunci_waiters", &[], "Requests that wait in a queue.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.status.counts.waiters));
    }),
    Row::gauge("kunci_contended_resources", &[], "Resources that somebody waits for.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.contended));
    }),
    Row::gauge(
        "kunci_remembered_requests",
        &[],
        "Requests that are remembered, so that a repeated one acts once.",
        |from, out| from.member.iter().for_each(|member| out.one(member.status.counts.requests)),
    ),
    Row::gauge(
        "kunci_revision",
        &[],
        "Ownership and queue events in the cluster's life; no token is larger.",
        |from, out| from.member.iter().for_each(|member| out.one(member.status.revision.get())),
    ),
    Row::counter(
        "kunci_events_total",
        &[label("kind", "")],
        "Events that were applied, by kind as in `GET /events`: `queued`, `granted`, `released`, `expired`, `forced`, \
         `abandoned`, `timed_out`, `cancelled`, `dropped`, `policy_changed`, `revision_raised`.",
        |from, out| {
            let kinds = from.member.iter().flat_map(|member| member.service.measures().events_by_kind());
            kinds.for_each(|(kind, count)| out.under(&[("kind", kind)], count));
        },
    ),
    Row::counter("kunci_handoffs_total", &[], "Grants to a request that had waited.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.service.measures().handoffs.get()));
    }),
    Row::counter(
        "kunci_renewals_total",
        &[label("outcome", "`renewed`, `late`, `lost`, `rejected`")],
        "Leases that were to be renewed. `late`: renewed with less than a third of its duration left. `lost`: it had \
         ended, or was another's. `rejected`: the policy doesn't allow the duration.",
        |from, out| {
            let Some(member) = &from.member else { return };
            let measures = member.service.measures();
            for (outcome, count) in [
                ("renewed", &measures.renewed),
                ("late", &measures.renewed_late),
                ("lost", &measures.renewals_lost),
                ("rejected", &measures.renewals_rejected),
            ] {
                out.under(&[("outcome", outcome)], count.get());
            }
        },
    ),
    Row::histogram(
        "kunci_lease_wait_seconds",
        &[label("end", "`granted`, `timed_out`, `cancelled`, `dropped`")],
        "How long a request waited in the queue until this end, in cluster time.",
        |from, out| {
            let waits = from.member.iter().flat_map(|member| member.service.measures().waits_by_end());
            waits.for_each(|(end, spread)| out.spread(&[("end", end)], Unit::Millis, spread));
        },
    ),
    Row::histogram(
        "kunci_lease_hold_seconds",
        &[label("end", "`released`, `expired`, `forced`, `abandoned`")],
        "How long a lease was held until this end, in cluster time.",
        |from, out| {
            let holds = from.member.iter().flat_map(|member| member.service.measures().holds_by_end());
            holds.for_each(|(end, spread)| out.spread(&[("end", end)], Unit::Millis, spread));
        },
    ),
];
