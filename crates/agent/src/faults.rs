//! What went wrong on the agent's side, by what services and agents put into fields: a status, a code, a type. A message
//! is never searched for words. Several agents pass a service's answer on in theirs, a JSON object with something around
//! it; its fields are read like any other.

use jiff::Timestamp;
use triphammer_model::FaultKind;

use crate::event::{self, Json};
use crate::reset_time;

/// An error inside of an error inside of an error is read, no deeper one.
const DEEPEST: usize = 5;

/// What an error's fields say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Which fault it is, where a field says so.
    pub(crate) kind: Option<FaultKind>,
    /// When a limit resets.
    pub(crate) reset_at: Option<Timestamp>,
}

/// The kind of an HTTP status that is an error.
pub(crate) const fn of_status(status: u64) -> Option<FaultKind> {
    Some(match status {
        401 | 403 | 407 => FaultKind::Authentication,
        402 => FaultKind::Quota,
        408 | 425 | 500..=599 => FaultKind::Overloaded,
        413 => FaultKind::ContextOverflow,
        429 => FaultKind::RateLimit,
        400..=499 => FaultKind::Protocol,
        _ => return None,
    })
}

/// The kind of an error's code, type or class name, however it is spelled: `rate_limit_error`, `RateLimitError`,
/// `RESOURCE_EXHAUSTED`, `429`.
///
/// From the documentation of Anthropic's, `OpenAI`'s and Google's interfaces, and from the sources of codex, opencode,
/// gemini, pi and litellm (which names mini's errors).
pub(crate) fn of_code(code: &str) -> Option<FaultKind> {
    if code.len() > 100 {
        return None;
    }
    if let Ok(status) = code.parse() {
        return of_status(status);
    }
    let letters = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
    let code: String = letters.collect();
    Some(match code.as_str() {
        "authenticationerror"
        | "authenticationfailed"
        | "autherror"
        | "auth"
        | "providerautherror"
        | "loadapikeyerror"
        | "invalidapikey"
        | "missingapikey"
        | "incorrectapikeyprovided"
        | "unauthorized"
        | "unauthorizederror"
        | "unauthenticated"
        | "permissionerror"
        | "permissiondenied"
        | "permissiondeniederror"
        | "forbidden"
        | "forbiddenerror"
        | "accessdenied"
        | "accessdeniedexception"
        | "accountdeactivated"
        | "tokenexpired"
        | "invalidgrant"
        | "refreshtokenreused"
        | "oauthorgnotallowed"
        | "fatalauthenticationerror"
        | "apikeyinvalid"
        | "validationrequirederror" => FaultKind::Authentication,
        "ratelimiterror"
        | "ratelimit"
        | "ratelimited"
        | "ratelimitexceeded"
        | "resourceexhausted"
        | "toomanyrequests"
        | "slowdown"
        | "throttled"
        | "throttling"
        | "throttlingexception"
        | "retryablequotaerror"
        | "ratelimitreached" => FaultKind::RateLimit,
        "insufficientquota"
        | "quotaexceeded"
        | "quotaexhausted"
        | "terminalquotaerror"
        | "usagelimitreached"
        | "usagelimitexceeded"
        | "usagenotincluded"
        | "billingerror"
        | "billinghardlimitreached"
        | "billingnotactive"
        | "paymentrequired"
        | "insufficientcredits"
        | "insufficientbalance"
        | "creditserror"
        | "outofcredits"
        | "budgetexceedederror"
        | "budgetexceeded"
        | "monthlylimiterror"
        | "freeusagelimiterror"
        | "enforcedspendlimitreached"
        | "insufficientg1creditsbalance" => FaultKind::Quota,
        "overloadederror"
        | "overloaded"
        | "serveroverloaded"
        | "servererror"
        | "internalservererror"
        | "internalerror"
        | "internal"
        | "apierror"
        | "apiconnectionerror"
        | "connectionerror"
        | "serviceunavailable"
        | "serviceunavailableerror"
        | "unavailable"
        | "badgateway"
        | "badgatewayerror"
        | "gatewaytimeout"
        | "timeouterror"
        | "timeout"
        | "apitimeouterror"
        | "apiconnectiontimeouterror"
        | "deadlineexceeded"
        | "modelerror"
        | "modelcapacityexhausted"
        | "httpconnectionfailed"
        | "responsestreamconnectionfailed"
        | "responsestreamdisconnected"
        | "responsetoomanyfailedattempts"
        | "econnrefused"
        | "econnreset"
        | "etimedout"
        | "enotfound"
        | "eaiagain"
        | "epipe" => FaultKind::Overloaded,
        "contextlengthexceeded"
        | "contextwindowexceeded"
        | "contextwindowexceedederror"
        | "contextoverflowerror"
        | "contextoverflow"
        | "modelcontextwindowexceeded"
        | "prompttoolong"
        | "blockinglimit"
        | "requesttoolarge" => FaultKind::ContextOverflow,
        "refusal"
        | "refused"
        | "contentfilter"
        | "contentfiltererror"
        | "contentpolicyviolation"
        | "contentpolicyviolationerror"
        | "safety"
        | "prohibitedcontent"
        | "blocklist"
        | "spii"
        | "invalidprompt"
        | "cyberpolicy" => FaultKind::Refused,
        "invalidrequesterror"
        | "invalidrequest"
        | "badrequest"
        | "badrequesterror"
        | "invalidargument"
        | "failedprecondition"
        | "notfound"
        | "notfounderror"
        | "modelnotfound"
        | "modelnotfounderror"
        | "unprocessableentityerror"
        | "unsupportedparamserror"
        | "malformedresponse"
        | "repeatedformaterror" => FaultKind::Protocol,
        _ => return None,
    })
}

/// The most precise of what a status and codes say. Several services send `invalid_request_error` along with whatever
/// else is wrong, and 429 for a spent quota as well as for a limit that passes.
pub(crate) fn of_all<'a>(status: Option<u64>, codes: impl IntoIterator<Item = &'a str>) -> Option<FaultKind> {
    let status = status.and_then(of_status);
    let kinds: Vec<_> = codes.into_iter().filter_map(of_code).collect();
    let precise = |kind: &FaultKind| !matches!(kind, FaultKind::Protocol | FaultKind::Overloaded);
    let quota = kinds.iter().find(|kind| **kind == FaultKind::Quota);
    let found = quota.or_else(|| kinds.iter().find(|kind| precise(kind))).copied();
    found
        .or(status.filter(precise))
        .or_else(|| kinds.iter().copied().chain(status).find(|kind| *kind == FaultKind::Overloaded))
        .or_else(|| kinds.first().copied())
        .or(status)
}

/// What an error object says, with the errors, headers and answers inside of it. `now` is when it came.
pub(crate) fn of_error(error: &Json<'_>, now: Timestamp) -> Told {
    let mut gathered = Gathered::default();
    gathered.take(error, now, 0);
    let kind = of_all(gathered.status, gathered.codes.iter().map(String::as_str));
    let limits = matches!(kind, Some(FaultKind::RateLimit | FaultKind::Quota | FaultKind::Overloaded));
    let reset_at = gathered.exact.or(gathered.header).filter(|_| limits);
    Told { kind, reset_at }
}

/// What the object says that a message holds, whole, from its first brace to its last: `429 {"type":"error",…}` (seen of
/// pi), `[API Error: {"error":{…}}]` (seen of gemini).
pub(crate) fn of_message(message: &str, now: Timestamp) -> Told {
    object_in(message).map_or_else(Told::default, |error| of_error(&error, now))
}

fn object_in(message: &str) -> Option<Json<'_>> {
    let (from, to) = (message.find('{')?, message.rfind('}')?);
    event::read(message.get(from..=to)?.as_bytes())
}

/// A call to the model failed and no field says why. Where the model had not answered even once, the service is out of
/// reach, and the attempt must not be charged for that; otherwise the agent fell over.
pub(crate) const fn unexplained(answered: bool) -> FaultKind {
    if answered { FaultKind::Crashed } else { FaultKind::Overloaded }
}

#[derive(Default)]
struct Gathered {
    status: Option<u64>,
    codes: Vec<String>,
    /// A reset time in a field that means nothing else.
    exact: Option<Timestamp>,
    /// The latest one of the headers, of which there is one for each limit.
    header: Option<Timestamp>,
}

impl Gathered {
    fn take(&mut self, error: &Json<'_>, now: Timestamp, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        for (name, value) in error.fields() {
            self.field(name, value, now, depth);
        }
        for value in error.list().iter().take(16) {
            self.take(value, now, depth + 1);
        }
    }

    fn field(&mut self, name: &str, value: &Json<'_>, now: Timestamp, depth: usize) {
        if name.len() > 100 {
            return;
        }
        let letters = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
        let name: String = letters.collect();
        match name.as_str() {
            "status" | "statuscode" | "httpstatus" | "httpstatuscode" | "code" | "type" | "name" | "kind"
            | "reason" | "errortype" | "errorkind" | "errorcode" | "errorname" | "category"
            | "errorstatus" | "apierrorstatus" => self.code(value, now, depth),
            "codexerrorinfo" => {
                // A name, or an object whose only field is named so.
                for (name, inner) in value.fields() {
                    self.codes.push(name.clone().into_owned());
                    self.take(inner, now, depth + 1);
                }
                self.code(value, now, depth);
            }
            "error" | "data" | "details" | "cause" | "responseheaders" | "headers" | "metadata"
            | "diagnostics" | "response" => {
                self.code(value, now, depth);
            }
            "responsebody" | "body" | "message" => match value.as_str().and_then(object_in) {
                Some(inner) => self.take(&inner, now, depth + 1),
                None => self.take(value, now, depth + 1),
            },
            "retryafterms" | "retryaftermillis" => self.exact(reset_time::in_millis(value, now)),
            "resetsat"
            | "resetat"
            | "resettime"
            | "resettimestamp"
            | "quotaresettimestamp"
            | "resetsinseconds"
            | "resetinseconds"
            | "resetafterseconds"
            | "retryafter"
            | "retryafterseconds"
            | "retrydelay"
            | "quotaresetdelay" => self.exact(reset_time::read(value, now)),
            _ if name.contains("ratelimit") && name.contains("reset") => {
                self.header = self.header.max(reset_time::read(value, now));
            }
            _ => {}
        }
    }

    fn exact(&mut self, at: Option<Timestamp>) {
        self.exact = self.exact.max(at);
    }

    fn code(&mut self, value: &Json<'_>, now: Timestamp, depth: usize) {
        match value {
            Json::Text(code) if self.codes.len() < 32 => self.codes.push(code.clone().into_owned()),
            Json::Count(number) => self.status = self.status.or(Some(*number)),
            _ => self.take(value, now, depth + 1),
        }
    }
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
