/** The API shapes that harnesses may speak. */
import { anthropicMessages } from "./anthropic-messages.ts";
import { googleGenerateContent } from "./google-generate-content.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiCompletions } from "./openai-completions.ts";
import { openaiResponses } from "./openai-responses.ts";

export const dialects = [openaiChat, openaiResponses, anthropicMessages, googleGenerateContent, openaiCompletions] as const;
