//! Gemini's content generation.

use serde_json::{Value, json};

use super::script::Failure;
use super::tools::{Call, Tool};
use super::wire::{Round, Said, Turn, Wire, event, list, parts_text, text};

pub(super) struct Gemini;

impl Wire for Gemini {
    fn streams(&self, path: &str, _body: &Value) -> bool {
        path.contains(":streamGenerateContent")
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let declared = list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations"));
        let tool = |function: &Value| {
            // A schema comes in Google's own form, or as JSON schema under another name.
            let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
            Tool::function(text(function, "name"), schema)
        };
        declared.map(tool).collect()
    }

    fn turns(&self, body: &Value) -> Vec<Turn> {
        let turn = |content: &Value| {
            if text(content, "role") == "model" {
                return None;
            }
            let parts = list(content, "parts").iter();
            let results = parts.filter(|part| part.get("functionResponse").is_some()).count();
            if results > 0 {
                Some(Turn::Results(results))
            } else {
                Some(Turn::Prompt(parts_text(&content["parts"])))
            }
        };
        list(body, "contents").iter().filter_map(turn).collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        let config = body.get("generationConfig")?;
        ["responseJsonSchema", "responseSchema"].iter().find_map(|key| config.get(key))
    }

    fn plain(&self, said: &Said, round: &Round) -> Value {
        let part = match said {
            Said::Text(text) => json!({"text": text}),
            Said::Call(Call::Function { name, arguments }) => {
                json!({"functionCall": {"name": name, "args": arguments}})
            }
            Said::Call(Call::Custom { name, input }) => {
                json!({"functionCall": {"name": name, "args": {"input": input}}})
            }
        };
        json!({
            "candidates": [{
                "index": 0,
                "content": {"role": "model", "parts": [part]},
                "finishReason": "STOP",
            }],
            "usageMetadata": {
                "promptTokenCount": round.input(),
                "cachedContentTokenCount": round.cached(),
                "candidatesTokenCount": round.output(),
                "totalTokenCount": round.input() + round.output(),
            },
            "modelVersion": round.model,
            "responseId": format!("resp_{}", round.number),
        })
    }

    fn events(&self, said: &Said, round: &Round) -> String {
        event(None, &self.plain(said, round))
    }

    fn failure(&self, failure: Failure) -> (u16, Value) {
        let quota = |id: &str| {
            json!([
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"},
            ])
        };
        let (code, status, message, details) = match failure {
            Failure::Authentication => (
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                json!([{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                }]),
            ),
            Failure::RateLimit => (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                quota("GenerateRequestsPerMinutePerProjectPerModel"),
            ),
            Failure::Quota => (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                quota("GenerateRequestsPerDayPerProjectPerModel"),
            ),
            Failure::Overloaded => {
                (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", json!([]))
            }
            Failure::ContextOverflow => (
                400,
                "INVALID_ARGUMENT",
                "The input token count exceeds the maximum number of tokens allowed (1048576).",
                json!([]),
            ),
            Failure::Server => (500, "INTERNAL", "An internal error has occurred.", json!([])),
        };
        let error = json!({"code": code, "message": message, "status": status, "details": details});
        (code, json!({"error": error}))
    }
}
