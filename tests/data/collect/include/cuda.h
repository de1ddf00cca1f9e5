/* Just enough of the CUDA driver's types for CUPTI's headers to compile; sizes as on Linux. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int CUdevice;
typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef int CUgraphNodeType;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef struct { char bytes[16]; } CUuuid;
typedef int CUstreamAttrID;
typedef union { int value; } CUstreamAttrValue;
typedef int CUdevice_attribute;
