//! How long a line of the native protocol takes, each way: `cargo bench --package kunci-api --bench native`.
#![expect(clippy::unwrap_used, reason = "a tool for measuring")]

use criterion::{Criterion, criterion_group, criterion_main};
use kunci_api::native::{Answer, Line};
use std::hint::black_box;

const ACQUIRE: &[u8] = b"A orders/eu/4711 30 20 req=pWv1Yl9gS8mO0sKx2t7uGA #4711";
const GRANTED: &[u8] =
    b"A A orders/eu/4711 token=81264 lease=Zm9vYmFyYmF6cXV4MTIzNA ttl_ms=30000 req=pWv1Yl9gS8mO0sKx2t7uGA at=5120.17 #4711";

fn native(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("native");
    let (line, answer) = (Line::parse(ACQUIRE).unwrap(), Answer::parse(GRANTED).unwrap());
    let mut out = Vec::new();
    group.bench_function("request read", |bencher| bencher.iter(|| Line::parse(black_box(ACQUIRE)).unwrap()));
    group.bench_function("request written", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&line).write(&mut out);
        });
    });
    group
        .bench_function("answer read", |bencher| bencher.iter(|| Answer::parse(black_box(GRANTED)).unwrap()));
    group.bench_function("answer written", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&answer).write(&mut out);
        });
    });
    group.finish();
}

criterion_group!(benches, native);
criterion_main!(benches);
