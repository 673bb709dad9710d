//! The smallest value that fits a JSON schema, as far as agents use them.

use serde_json::{Map, Value, json};

/// A value that fits: required properties only, the first of what is listed.
pub(super) fn example(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(|schemas| schemas.get(0)) {
            return example(first);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    // Google writes the names of types in capitals.
    match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
        "string" => json!("text"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(false),
        "array" => json!([]),
        "null" => Value::Null,
        _ => {
            let names =
                schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let fields = names.iter().filter_map(Value::as_str);
            let field = |name: &str| (name.to_owned(), example(&schema["properties"][name]));
            Value::Object(fields.map(field).collect::<Map<_, _>>())
        }
    }
}
