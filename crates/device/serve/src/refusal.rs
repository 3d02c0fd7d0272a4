//! The reasons for which a request is refused, each with its status code.

use http::StatusCode;

use wakeai_tus as tus;

/// Why a request is refused. Bytes that were acknowledged before are kept. Counters have the reason's name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// `Tus-Resumable` is missing or names another version.
    #[error("Tus-Resumable has to be 1.0.0")]
    Version,
    /// No upload has this path.
    #[error("no such upload: it never existed, was removed, or has expired")]
    NotFound,
    /// The path does not take this method.
    #[error("this path does not take this method; Allow has those that it takes")]
    Method(Target),
    /// The server does not know the method.
    #[error("this server does not know the method")]
    UnknownMethod,
    /// The request expects what the server does not do.
    #[error("Expect asks for more than 100-continue, which is all that this server does")]
    Expectation,
    /// The body is coded for its transfer in another way than `chunked`.
    #[error("Transfer-Encoding has to be chunked alone")]
    TransferCoding,
    /// The body is compressed.
    #[error("Content-Encoding is not supported: send the bytes of the file as they are")]
    ContentCoding,
    /// A field asks for what the server does not do.
    #[error(
        "this server does not do what {0} asks for; OPTIONS tells the extensions and checksums that it has"
    )]
    Unsupported(&'static str),
    /// `If-Match` or `If-None-Match` does not hold.
    #[error("If-Match or If-None-Match does not hold; uploads have no entity tags")]
    Precondition,
    /// `If-None-Match` does not hold for a HEAD.
    #[error("If-None-Match does not hold")]
    NotModified,
    /// The request has not exactly one valid `Host`.
    #[error("a request of HTTP/1.1 has to have one valid Host")]
    NoHost,
    /// A PATCH has a body of another media type.
    #[error("the body's Content-Type has to be application/offset+octet-stream")]
    MediaType,
    /// A header field is missing, comes twice, or cannot be read.
    #[error("the header field {0} is missing, repeated or invalid")]
    Field(&'static str),
    /// The head of the request is too large.
    #[error("the request's head has more than 16 kB")]
    Head,
    /// The algorithm of the checksum is unknown.
    #[error("the algorithm of Upload-Checksum is unknown: sha1 and sha256 are known")]
    Algorithm,
    /// The upload ends before the end of the request's body.
    #[error("the body goes beyond the length of the upload")]
    BeyondLength,
    /// The upload is larger than the server allows.
    #[error("the upload is larger than this server allows; Tus-Max-Size has the limit")]
    TooLarge,
    /// The offset of the request is not that of the upload.
    #[error("Upload-Offset is not the offset of the upload; HEAD tells it")]
    Offset,
    /// The upload's length is already known, and the request states another one.
    #[error("the upload has another length")]
    Length,
    /// The body's checksum does not match: none of its bytes counts.
    #[error("the body does not match its checksum")]
    Checksum,
    /// The upload has expired.
    #[error("the upload has expired")]
    Expired,
    /// Another request holds the upload.
    #[error("another request works on this upload")]
    Locked,
    /// A newer request has taken the upload over.
    #[error("a newer request took this upload over")]
    TakenOver,
    /// The client's or the directory's quota would be exceeded.
    #[error("the quota for uploads is used up")]
    Quota,
    /// The client has too many unfinished uploads.
    #[error("too many unfinished uploads of this client")]
    TooMany,
    /// The disk is full.
    #[error("the server's disk is full; Upload-Offset tells what is kept")]
    DiskFull,
    /// The server could not read or write its files.
    #[error("the server could not read or write its files; its log says why")]
    Storage,
    /// The server's directory was removed while it ran.
    #[error(
        "the directory of the server's uploads is gone, and nothing can be stored until it is started again"
    )]
    Lost,
    /// The file of an unfinished upload was removed at the server.
    #[error("the bytes of this upload were removed at the server: create it anew")]
    Missing,
    /// The request has no valid token.
    #[error("a valid token is needed: Authorization: Bearer TOKEN")]
    Token,
    /// The request names another host than this one.
    #[error("Host has to be an IP address or localhost")]
    Host,
    /// No byte of the body arrived for too long.
    #[error("no byte of the body arrived for too long; Upload-Offset tells what is kept")]
    Stalled,
    /// The connection of the request was lost.
    #[error("the connection was lost")]
    Cut,
    /// The server is stopping.
    #[error("the server stops; Upload-Offset tells what is kept")]
    Stopping,
}

/// What a path names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The path that creates uploads.
    #[default]
    Uploads,
    /// One upload.
    Upload,
}

impl Target {
    /// The methods that it takes, as `Allow` has them.
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Uploads => "OPTIONS, POST",
            Self::Upload => "OPTIONS, HEAD, PATCH, DELETE",
        }
    }
}

impl Refusal {
    /// The status code of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Version | Self::Precondition => StatusCode::PRECONDITION_FAILED,
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::UnknownMethod | Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType | Self::ContentCoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Field(_)
            | Self::Algorithm
            | Self::Length
            | Self::Cut
            | Self::Unsupported(_)
            | Self::NoHost => StatusCode::BAD_REQUEST,
            Self::BeyondLength | Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Offset => StatusCode::CONFLICT,
            Self::Checksum => StatusCode::from_u16(tus::CHECKSUM_MISMATCH).expect("a status code"),
            Self::Expired | Self::Missing => StatusCode::GONE,
            Self::Locked | Self::TakenOver => StatusCode::LOCKED,
            Self::Quota | Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Storage => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::Lost | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
