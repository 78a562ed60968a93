/** JSON that somebody typed. */

/** The value of a text, or what is wrong with it in the parser's words. */
export function parsed(text: string): { value: unknown; fault: "" } | { value: null; fault: string } {
  try {
    return { value: JSON.parse(text), fault: "" };
  } catch (error) {
    return { value: null, fault: (error as Error).message };
  }
}
