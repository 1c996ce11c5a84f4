/* Translates lines with a SavedModel, as the stock TF Serving would run it.
 *
 * No Python: the core loader of the server, XLA off as the server starts, the
 * op library of tensorflow_text. Tensor names come from the SignatureDef.
 *
 *   serving_smoke SAVED_MODEL OP_LIBRARY INPUT OUTPUT < lines > translations
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>
#include <tensorflow/c/tf_tstring.h>

enum { MAX_LINES = 64, MAX_LINE = 65536 };

/* tensorflow::DisableXlaCompilation(), with which the server starts. */
void disable_xla(void) __asm__("_ZN10tensorflow21DisableXlaCompilationEv");

static void check(const TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s\n", TF_Message(status));
  exit(1);
}

/* Finds the tensor "name:index". */
static TF_Output find(TF_Graph* graph, char* tensor) {
  char* colon = strrchr(tensor, ':');
  *colon = '\0';
  TF_Output output = {TF_GraphOperationByName(graph, tensor), atoi(colon + 1)};
  if (output.oper == NULL) {
    fprintf(stderr, "no operation %s\n", tensor);
    exit(1);
  }
  return output;
}

/* Reads lines as a string tensor (B,). */
static TF_Tensor* read_lines(void) {
  static char lines[MAX_LINES][MAX_LINE];
  int64_t count = 0;
  while (count < MAX_LINES && fgets(lines[count], MAX_LINE, stdin)) ++count;
  TF_Tensor* tensor =
      TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString* strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < count; ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], lines[i], strcspn(lines[i], "\n"));
  }
  return tensor;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "wants SAVED_MODEL OP_LIBRARY INPUT OUTPUT\n");
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  disable_xla();
  TF_LoadLibrary(argv[2], status);
  check(status);
  TF_Graph* graph = TF_NewGraph();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(
      TF_NewSessionOptions(), NULL, argv[1], tags, 1, graph, NULL, status);
  check(status);
  TF_Output input = find(graph, argv[3]);
  TF_Output output = find(graph, argv[4]);
  TF_Tensor* text = read_lines();
  TF_Tensor* translation = NULL;
  TF_SessionRun(session, NULL, &input, &text, 1, &output, &translation, 1, NULL,
                0, NULL, status);
  check(status);
  const TF_TString* strings = TF_TensorData(translation);
  for (int64_t i = 0; i < TF_Dim(translation, 0); ++i) {
    fwrite(TF_StringGetDataPointer(&strings[i]), 1,
           TF_StringGetSize(&strings[i]), stdout);
    putchar('\n');
  }
  return 0;
}
