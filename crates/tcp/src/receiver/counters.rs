//! What a receiver counts.

/// Everything that is counted, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments that came with data.
    pub data_segments: u64,
    /// Of these, those that came behind a gap.
    pub out_of_order: u64,
    /// Of these, those that had come before, in whole or in part.
    pub duplicates: u64,
    /// Segments that lay outside the window, or were older than their timestamps allow.
    pub unacceptable: u64,
    /// Acknowledgements without anything else.
    pub acks: u64,
    /// Of these, those that left because the delay was over.
    pub delayed_acks: u64,
    /// Acknowledgements of data out of order that were spared because a later one said the same.
    pub compressed_acks: u64,
    /// Acknowledgements that told of something that came twice (D-SACK).
    pub duplicate_sacks: u64,
    /// Acknowledgements that closed the window.
    pub zero_windows: u64,
    /// SYN-ACKs that were sent again.
    pub syn_ack_retransmits: u64,
    /// FINs that were sent again.
    pub fin_retransmits: u64,
}
