//! Tests of frames and aggregates.

use super::*;
use crate::node::StationId;

const TO: Destination = Destination::Unicast(Node::Server);

fn frames(count: u32) -> Frames<u32> {
    let mut frames = Frames::new();
    for packet in 0..count {
        frames.push(
            packet,
            Node::Station(StationId(0)),
            TO,
            Shape { packet: 1_500, mpdu: 1_538, kind: Kind::Data },
        );
    }
    frames
}

fn ht(subframes: usize, psdu: u32) -> Limits {
    Limits { framing: Framing::Ht, subframes, psdu, amsdu: 0 }
}

fn released(frames: &mut Frames<u32>) -> Vec<u32> {
    std::iter::from_fn(|| frames.release()).map(|frame| frame.packet).collect()
}

#[test]
fn an_ht_ampdu_pads_all_subframes_but_the_last() {
    // An MPDU with its delimiter has 4 + 1538 = 1542 bytes, padded to 1544.
    let psdu = frames(3).plan(&ht(64, 65_535)).unwrap();
    assert_eq!(psdu, Psdu { span: 3, mpdus: 3, bytes: 1_544 + 1_544 + 1_542 });
}

#[test]
fn a_single_frame_has_a_delimiter_in_vht_only() {
    assert_eq!(frames(1).plan(&ht(64, 65_535)).unwrap().bytes, 1_538);
    let vht = Limits { framing: Framing::Vht, ..ht(64, 65_535) };
    assert_eq!(frames(1).plan(&vht).unwrap().bytes, 1_544);
}

#[test]
fn subframes_and_bytes_limit_an_ampdu() {
    assert_eq!(frames(90).plan(&ht(64, 1_000_000)).unwrap().mpdus, 64);
    assert_eq!(frames(90).plan(&ht(64, 65_535)).unwrap().mpdus, 42); // 41 * 1544 + 1542
    assert_eq!(frames(90).plan(&ht(64, 10)).unwrap().mpdus, 1);
}

#[test]
fn a_failed_frame_holds_back_those_behind_it_and_the_window() {
    let mut frames = frames(10);
    let psdu = frames.plan(&ht(4, 65_535)).unwrap();
    let mut outcomes = [false, true, true, true].into_iter();
    let settled = frames.settle(psdu, 7, || outcomes.next().unwrap(), |_, _, _| ());
    assert_eq!(settled, Settled { acknowledged: 3, failed: 1, dropped: 0, failed_mpdus: 1 });
    assert_eq!(released(&mut frames), []);
    // The window of 4 begins at frame 0, so frame 4 and all later frames have to wait.
    let retry = frames.plan(&ht(4, 65_535)).unwrap();
    assert_eq!((retry.mpdus, frames.waiting), (1, 7));
    frames.settle(retry, 7, || true, |_, _, _| ());
    assert_eq!(released(&mut frames), [0, 1, 2, 3]);
}

#[test]
fn a_frame_given_up_lets_the_others_pass() {
    let mut frames = frames(3);
    let mut gone = Vec::new();
    for _ in 0..2 {
        let psdu = frames.plan(&ht(1, 65_535)).unwrap();
        frames.settle(psdu, 2, || false, |packet, _, _| gone.push(*packet));
    }
    assert_eq!(gone, [0]);
    assert_eq!(released(&mut frames), []);
    let psdu = frames.plan(&ht(64, 65_535)).unwrap();
    assert_eq!(psdu.mpdus, 2);
    frames.settle(psdu, 2, || true, |packet, _, _| gone.push(*packet));
    assert_eq!(released(&mut frames), [1, 2]);
    assert_eq!(gone, [0, 1, 2]);
}

#[test]
fn a_frame_on_the_air_is_not_taken_back() {
    let mut frames = frames(2);
    assert_eq!(frames.pop_untried(1), Some(1));
    assert_eq!(frames.pop_untried(1), None);
}

/// The packets that are handed up while an aggregate is on the air.
fn handed_up(frames: &mut Frames<u32>) -> Vec<u32> {
    std::iter::from_fn(|| frames.hand_up().map(|frame| frame.packet)).collect()
}

#[test]
fn what_was_handed_up_in_mid_aggregate_is_not_handed_up_again() {
    let mut frames = frames(4);
    let psdu = frames.plan(&ht(64, 65_535)).unwrap();
    frames.decode(0, false);
    assert_eq!(handed_up(&mut frames), [0]);
    assert_eq!((frames.waiting, frames.packets()), (4, 3));
    frames.decode(1, false);
    assert_eq!(handed_up(&mut frames), [1]);
    // The last two frames arrive as the aggregate ends.
    frames.settle(psdu, 7, || true, |_, _, _| ());
    assert_eq!(released(&mut frames), [2, 3]);
    assert_eq!((frames.waiting, frames.packets()), (0, 0));
}

#[test]
fn nothing_is_handed_up_past_a_damaged_mpdu_until_its_retry() {
    let mut frames = frames(4);
    let psdu = frames.plan(&ht(64, 65_535)).unwrap();
    for place in 0..3 {
        frames.decode(place, place == 1);
    }
    assert_eq!(handed_up(&mut frames), [0]);
    let settled = frames.settle(psdu, 7, || true, |_, _, _| ());
    assert_eq!(settled, Settled { acknowledged: 3, failed: 1, dropped: 0, failed_mpdus: 1 });
    assert_eq!(released(&mut frames), []);
    // The retry is sent together with a new frame. The frames that were held back arrive with the
    // retry.
    frames.push(4, Node::Server, TO, Shape { packet: 1_500, mpdu: 1_538, kind: Kind::Data });
    let retry = frames.plan(&ht(64, 65_535)).unwrap();
    assert_eq!(retry.mpdus, 2);
    assert_eq!(frames.unsettled_from(0), Some((0, 1_538)));
    frames.decode(0, false);
    assert_eq!(handed_up(&mut frames), [1, 2, 3]);
    frames.settle(retry, 7, || true, |_, _, _| ());
    assert_eq!(released(&mut frames), [4]);
}
