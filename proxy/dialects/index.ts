export { fromCarrier } from "./carrier.ts";
export {
  type Address,
  type AnswerContext,
  type CallLabels,
  type ChoicePlace,
  type Dialect,
  type Framing,
  type Headers,
  type HttpAnswer,
  type RecordRequest,
  type Route,
  type SessionRecord,
  type SeveralAnswers,
  type SseFrame,
  type StoredCall,
  type StoredConversation,
  type StreamJoiner,
  type StreamWriter,
  toEvents,
} from "./dialect.ts";
export { dialects } from "./registry.ts";
export { toolInput } from "./tool-input.ts";
