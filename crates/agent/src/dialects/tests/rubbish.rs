//! Streams that are cut, torn and wrong: nothing panics, and a receipt is made of what is left.

use proptest::prelude::*;

use super::*;

/// A receipt is made, and what must always hold of it holds.
fn sound(vendor: &str, bytes: &[u8]) -> Receipt {
    let receipt = hear(vendor, bytes).into_receipt(vendor);
    assert_eq!(receipt.agent, vendor);
    assert!(receipt.files.iter().all(|file| !file.path.is_empty()));
    assert!(receipt.troubles.len() < 30);
    let written = serde_json::to_string(&receipt).expect("a receipt can be written");
    assert_eq!(serde_json::from_str::<Receipt>(&written).expect("and read"), receipt);
    receipt
}

/// All recordings with all vendors: what one says is rubbish to the others.
fn recordings() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    RECORDINGS.into_iter().map(|(name, vendor)| (vendor, recording(name)))
}

#[test]
fn cut_at_every_97th_byte() {
    for (vendor, bytes) in recordings() {
        let whole = sound(vendor, &bytes);
        for end in (0..bytes.len()).step_by(97) {
            let cut = sound(vendor, &bytes[..end]);
            assert!(cut.fault.is_some() || cut.stop_reason == whole.stop_reason, "{vendor} cut at {end}");
            sound(vendor, &bytes[end..]);
        }
    }
}

#[test]
fn a_record_cut_at_every_97th_byte() {
    for name in ["codex-401.rollout", "codex-quota.rollout", "codex-resumed.rollout"] {
        let bytes = recording(name);
        for at in (0..bytes.len()).step_by(97) {
            for part in [&bytes[..at], &bytes[at..]] {
                let mut heard = hear("codex", &recording("codex-resumed.jsonl"));
                add_rollout(part, &mut heard);
                assert!(heard.tokens.is_some(), "{name} at {at}");
            }
        }
    }
}

#[test]
fn each_line_dropped_or_doubled() {
    for (vendor, bytes) in recordings() {
        let lines: Vec<_> = bytes.split_inclusive(|b| *b == b'\n').collect();
        for at in 0..lines.len() {
            let (before, after) = (&lines[..at], &lines[at + 1..]);
            sound(vendor, &[before.concat(), after.concat()].concat());
            sound(
                vendor,
                &[before.concat(), lines[at].to_vec(), lines[at].to_vec(), after.concat()].concat(),
            );
        }
    }
}

#[test]
fn read_as_another_vendor_s() {
    for (of, bytes) in recordings() {
        for vendor in ["claude", "codex", "gemini", "mini", "opencode", "own", "pi", "qwen"] {
            let receipt = sound(vendor, &bytes);
            assert!(
                vendor == of
                    || receipt.files.is_empty()
                    || receipt.fault.is_some()
                    || vendor == "claude"
                    || vendor == "qwen",
                "{of} as {vendor}: {receipt:?}"
            );
        }
    }
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(places).sum(),
        Value::Object(fields) => fields.values().map(places).sum(),
        _ => 0,
    }
}

/// Puts `new` in the place of the `at`th value.
fn put(value: &mut Value, at: &mut usize, new: &Value) {
    if *at == 0 {
        *value = new.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| put(value, at, new)),
        Value::Object(fields) => fields.values_mut().for_each(|value| put(value, at, new)),
        _ => {}
    }
}

/// Each value of each event of each recording in turn, by each of these.
#[test]
fn each_value_of_another_type() {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("{\"type\":\"error\"}"),
        json!([]),
        json!({}),
        json!([{"type": "error"}]),
    ];
    for (vendor, bytes) in recordings().filter(|(vendor, _)| *vendor != "pi") {
        let events: Vec<Value> = serde_json::Deserializer::from_slice(&bytes).into_iter().flatten().collect();
        for (n, event) in events.iter().enumerate() {
            for at in 1..places(event) {
                let mut event = event.clone();
                put(&mut event, &mut { at }, &others[(at + n) % others.len()]);
                let mut all = events.clone();
                all[n] = event;
                let lines: Vec<_> = all.iter().map(|event| format!("{event}\n")).collect();
                sound(vendor, lines.concat().as_bytes());
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Several values at once, by anything, with bytes torn out of the lines.
    #[test]
    fn several_values_by_anything(
        which in 0..RECORDINGS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any_json()), 1..6),
        holes in prop::collection::vec((any::<prop::sample::Index>(), 1..200_usize), 0..3),
    ) {
        let (name, vendor) = RECORDINGS[which];
        let bytes = recording(name);
        let mut events: Vec<Value> = serde_json::Deserializer::from_slice(&bytes).into_iter().flatten().collect();
        for (event, place, new) in &changes {
            let event = event.index(events.len());
            let place = place.index(places(&events[event]));
            put(&mut events[event], &mut { place }, new);
        }
        let lines: Vec<_> = events.iter().map(|event| format!("{event}\n")).collect();
        let mut bytes = lines.concat().into_bytes();
        for (at, length) in holes {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.drain(at..end);
            bytes.push(b'\n');
        }
        sound(vendor, &bytes);
    }
}
